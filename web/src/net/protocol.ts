/** The words of the page protocol: JSON-RPC 2.0 over a WebSocket. Positions are 0-based, characters are UTF-16 units, paths absolute, texts have LF line ends. */

import type { Ends } from "../core/ends";

/** A place in a document, 0-based, `character` in UTF-16 units. */
export interface Position {
  line: number;
  character: number;
}

/** A folder of the workspace. */
export interface Root {
  path: string;
  name: string;
}

/** A connected CLI; `since` in Unix milliseconds. */
export interface Session {
  id: number | string;
  label: string;
  since: number;
  process?: string;
  pid?: number;
  /** Whether it is told what the user looks at. */
  told?: "told" | "paused" | "asks" | "never";
}

/** An open proposal, without its texts; `opened` in Unix milliseconds. */
export interface DiffInfo {
  id: string;
  path: string;
  filePath: string;
  isNew: boolean;
  title: string;
  owner: string;
  opened: number;
  edited: boolean;
  /** Why it cannot be edited; absent where it can be. */
  readOnly?: string;
}

/** How the lines of a file end. */
export type EOL = "lf" | "crlf" | "cr" | "mixed";

/** Lines of the proposal, 0-based, that its file has changed as well, and the file's lines for them. */
export interface Place {
  start: number;
  end: number;
  text: string;
}

/** The file has changed where the proposal changes it (SPEC F-13). Without places it is the file as a whole. */
export interface Conflict {
  reason: string;
  places: Place[];
}

/** What the proposal would replace: `base` counts the changes of the file, `others` wait for the same one. */
export interface DiffBase {
  base: number;
  conflict?: Conflict;
  others: number;
}

/** An open proposal with its texts; `text` is `new` as it has been edited. */
export interface DiffTexts extends DiffInfo, DiffBase {
  old: string;
  new: string;
  text: string;
  version: number;
  /** The last of this page's edits that the text has. */
  edit?: number;
  eol?: EOL;
  dirtyElsewhere?: boolean;
}

/** What a policy does with a proposal (SPEC F-11). */
export type PolicyMode = "ask" | "accept" | "terminal";

/** One line of the user's policy; neither owner nor pattern: for everything. */
export interface Rule {
  mode: PolicyMode;
  owner?: string;
  pattern?: string;
}

/** One entry of a folder. */
export interface TreeEntry {
  name: string;
  path: string;
  kind: "file" | "dir" | "link";
  ignored?: boolean;
}

/** A file's text and the shape that the server restores on saving. */
export interface FileContent {
  path: string;
  content: string;
  version: string;
  eol: EOL;
  bom: boolean;
  finalNewline: boolean;
  readOnly: boolean;
}

/** How a proposal ended. */
export type OutcomeName = "accepted" | "rejected" | "withdrawn";

/** One line of the history (SPEC F-12); `at` in Unix milliseconds. */
export interface HistoryEntry {
  id: string;
  path: string;
  title: string;
  owner: string;
  at: number;
  outcome: OutcomeName;
  edited: boolean;
  undoable: boolean;
  undone: boolean;
}

/** One line of the history with its texts. */
export interface HistoryTexts extends HistoryEntry {
  old: string;
  new: string;
  final: string;
}

/** What this page shows: the answer to "where is the user?". */
export interface ContextReport {
  focused: boolean;
  active: {
    path: string;
    cursor: Position;
    selections: { start: Position; end: Position; text: string }[];
  } | null;
  open: string[];
  dirty: string[];
}

/** What the companion does without, why that matters, and what helps. */
export interface Trouble {
  id?: string;
  what: string;
  why: string;
  do: string;
}

/** What the companion tells at a greeting. */
export interface Hello {
  version: string;
  pid: number;
  name: string;
  agent?: { port: number };
  roots: Root[];
  sessions: Session[];
  diffs: DiffInfo[];
  rules: Rule[];
  troubles?: Trouble[];
  platform: "linux" | "darwin" | "windows";
}

type Empty = Record<string, never>;

/** Requests that the page makes: parameters and result by method. */
export interface Requests {
  hello: [{ clientId: string }, Hello];
  ping: [Empty, Empty];
  "tree/list": [{ path: string; showIgnored?: boolean }, { entries: TreeEntry[]; truncated: boolean }];
  "tree/find": [{ query: string; limit: number }, { files: string[]; truncated: boolean; old: boolean }];
  "file/read": [{ path: string }, FileContent];
  "file/save": [{ path: string; content: string; baseVersion: string; force?: boolean }, { version: string }];
  "file/create": [{ path: string; dir?: boolean }, Empty];
  "file/rename": [{ from: string; to: string }, Empty];
  "file/delete": [{ path: string; recursive?: boolean }, Empty];
  /** `brief`: without the texts. */
  "diff/read": [{ id: string; brief?: boolean; short?: boolean }, DiffTexts & { newEnds?: Ends; textEnds?: Ends }];
  /** `version` and `base` are what the page shows: nothing newer is accepted. */
  "diff/accept": [{ id: string; text: string; version: number; base: number }, Empty];
  "diff/resolve": [{ id: string; text: string; version: number; base: number; edit: number; take: "proposal" | "file" }, Empty];
  "diff/reject": [{ id: string }, Empty];
  "policy/set": [Rule, { rules: Rule[] }];
  /** Lines from 1; 0 for the whole file. */
  "agent/mention": [{ session: number; path: string; first: number; last: number; words: string }, { session: string }];
  /** Whether agents are told what the user looks at. */
  "context/pause": [{ paused: boolean }, Empty];
  "history/list": [Empty, { entries: HistoryEntry[] }];
  "history/read": [{ id: string }, HistoryTexts];
  "history/undo": [{ id: string }, Empty];
}

/** Notifications that the page sends. */
export interface Outgoing {
  "context/update": ContextReport;
  /** `version` is the latest of the companion's that the text contains; `edit` counts what was sent of this diff. */
  "diff/edit": { id: string; text: string; version: number; edit: number; clientId: string };
}

/** Notifications that the page hears. */
export interface Incoming {
  "diff/opened": { diff: DiffInfo };
  /** `edit` is the last of this page's edits that the text has: another one is on its way when it is not the latest. */
  "diff/text": { id: string; text: string; version: number; edit?: number; clientId: string };
  "diff/base": { id: string; isNew: boolean; old: string; text: string; version: number; edit?: number } & DiffBase;
  "diff/closed": { id: string; outcome: string; owner: string };
  "file/changed": { path: string; version: string | null };
  "tree/changed": { dirs: string[] };
  "sessions/changed": { sessions: Session[] };
  "rules/changed": { rules: Rule[] };
  "troubles/changed": { troubles: Trouble[] };
  "history/changed": Empty;
  "roots/changed": { roots: Root[] };
  open: { path: string; position?: Position; takeFocus: boolean };
  bye: { reason: string };
}

/** A question that the companion asks the user. */
export interface AskParams {
  title: string;
  message: string;
  choices: string[];
}

/** Error codes that the page reacts to. */
export const Code = {
  notFound: -32010,
  binary: -32011,
  tooBig: -32012,
  outside: -32013,
  changedOnDisk: -32014,
  notPermitted: -32015,
  settled: -32020,
  emptied: -32021,
  stale: -32022,
  conflict: -32023,
  methodNotFound: -32601,
  /** Not on the wire: there is no connection now. */
  offline: -1,
} as const;

/** An error of the companion's, with a message for a person. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** The message of whatever was thrown. */
export function messageOf(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
