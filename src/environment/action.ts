/** What a turn of the policy means. A codec turns text into an action and back; the environment knows no text format. */
export type Action =
  | { readonly type: "search"; readonly query: string }
  /** Several searches in one turn; no two queries are equal. */
  | { readonly type: "searches"; readonly queries: readonly string[] }
  | AnswerAction
  /** Hands everything to another model, the generator, which answers. */
  | { readonly type: "callGenerator" }
  /** Text that is no action; `reason` is one of a closed set so that it can be counted. */
  | { readonly type: "invalid"; readonly reason: InvalidReason };

export interface AnswerAction {
  readonly type: "answer";
  /** Empty where it abstains. */
  readonly answer: string;
  /** Numbers of the passages it rests on, in formats with citations. */
  readonly cited?: readonly number[];
  /** The policy says that it does not know. */
  readonly abstains?: boolean;
}

export type InvalidReason = "noAction" | "emptyQuery" | "emptyAnswer" | "searchNotAllowed" | "malformed";

export interface Codec {
  /** Named in recipes and contracts, such as `search-r1`. */
  readonly name: string;
  /** A turn ends after the first of these; they are part of the turn's text. */
  readonly stopStrings: readonly string[];
  /** Every tag of the format; text from outside must never contain one. */
  readonly tags: readonly string[];
  /** The action of one turn's text (that turn alone, never the prompt or an observation). */
  parse(turn: string): Action;
  /** Reads the last turn, where formats without a tag for answers mean something else by it; absent: `parse`. */
  parseFinal?(turn: string): Action;
  /** True: passages are numbered through the episode and not through each search, so that a number can be cited. */
  readonly numbersThroughEpisode?: boolean;
  /** What the environment says before the last turn of an episode with searches; absent: nothing. */
  readonly finalCue?: string;
  /** The shortest turn that parses to `action`. */
  render(action: Exclude<Action, { type: "invalid" }>): string;
  /** Reasoning before an action, which `parse` reads past. */
  renderThought(thought: string): string;
  /** Wraps passages, already made safe and shortened, as the environment's answer to a search. */
  renderObservation(passages: string): string;
  /** What the environment says after an invalid action. */
  readonly invalidMessage: string;
}
