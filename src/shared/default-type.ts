/** The variant of a union that is meant when `type` is left out, so that an override of one key of it is enough. */
import { z } from "zod";

/** A literal that may be absent. Zod tells variants apart before it fills in defaults, hence the `optional`. */
export function defaultType<const Name extends string>(name: Name) {
  return z.literal(name).optional().default(name);
}
