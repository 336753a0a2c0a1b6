/**
 * Named ways to show passages to a policy. Each renders one passage; an observation is their concatenation. Making
 * the text safe and shortening it is done in `observation.ts`.
 */
import type { Passage } from "../corpus/passage.ts";
import { sha256 } from "../shared/hash.ts";

export const passageTemplateNames = ["search-r1", "text", "numbered"] as const;
export type PassageTemplateName = (typeof passageTemplateNames)[number];

export interface PassageTemplate {
  readonly name: PassageTemplateName;
  /** SHA-256 of the template; results of unequal templates are not compared. */
  readonly hash: string;
  /** One passage; `rank` counts from 1. */
  render(passage: Passage, rank: number): string;
}

const templates: Readonly<Record<PassageTemplateName, string>> = {
  /** Search-R1's `_passages2string`. */
  "search-r1": "Doc {rank}(Title: {title}) {text}\n",
  /** The text alone; the space makes its first word the same token as in running text. */
  text: " {text}\n",
  numbered: "[{rank}] {title}: {text}\n",
};

function createTemplate(name: PassageTemplateName): PassageTemplate {
  const template = templates[name];
  return {
    name,
    hash: sha256(template),
    render: (passage, rank) => {
      const values: Record<string, string> = { rank: String(rank), title: passage.title, text: passage.text };
      return template.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
    },
  };
}

const passageTemplates = new Map(passageTemplateNames.map((name) => [name, createTemplate(name)]));

/** The template called `name`. */
export function findPassageTemplate(name: PassageTemplateName): PassageTemplate {
  return passageTemplates.get(name) as PassageTemplate;
}
