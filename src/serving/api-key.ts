/**
 * One shared key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`. The comparison takes equally long whatever was
 * sent: both sides are hashed first, so that not even the length shows.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { HttpError } from "./http-error.ts";

/** A check that throws `HttpError` (401) for headers without the key. */
export function apiKeyCheck(key: string): (headers: Headers) => void {
  const expected = digest(key);
  return (headers) => {
    const bearer = /^Bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
    const given = headers.get("x-api-key") ?? bearer;
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return;
    throw new HttpError(
      401,
      {
        expected: "the server's API key",
        got: given === undefined ? "none" : "another key",
        advice: "send it as Authorization: Bearer KEY or X-API-Key: KEY",
      },
      { "www-authenticate": "Bearer" },
    );
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
