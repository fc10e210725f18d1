import type { Connection } from "../net/connection";
import { messageOf, type Session } from "../net/protocol";
import { note } from "./announce";
import { dialogFrame, modal } from "./dialogs";
import { h } from "./dom";

/** What a mention would be of: the shown file and, where something is selected, its lines from 1. */
export interface Target {
  path: string;
  name: string;
  first: number;
  last: number;
}

/** Why an agent is not told what the user looks at; "" where it is told, or all are told nothing. */
export function untold(s: Session): string {
  if (s.told === "never") return "never told what you look at";
  return s.told === "asks" ? "told nothing until you agree" : "";
}

function describe(s: Session): string {
  const since = s.since > 0 ? `since ${new Date(s.since).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}` : "";
  return [s.label, s.process, s.pid ? `process ${s.pid}` : "", since, untold(s)].filter(Boolean).join(" · ");
}

/** Has agents be told nothing of what the user looks at, or everything again; false when the companion refuses. */
export async function share(connection: Connection, paused: boolean): Promise<boolean> {
  try {
    await connection.request("context/pause", { paused });
    note(paused ? "Agents are told nothing of what you look at." : "Agents are told what you look at.");
    return true;
  } catch (e) {
    note(messageOf(e), { kind: "problem" });
    return false;
  }
}

/** The dialog of the connected CLIs: who they are, a mention for one of them, and whether they are told what the user looks at. */
export async function showSessions(connection: Connection, sessions: Session[], paused: boolean, target: Target | null): Promise<void> {
  const words = h("input", { type: "text", "aria-label": "Words that follow the mention", placeholder: "Words of yours (optional)", testid: "mention-words" });
  const mention = async (s: Session): Promise<void> => {
    if (!target) return;
    try {
      const { path, first, last } = target;
      const done = await connection.request("agent/mention", { session: Number(s.id), path, first, last, words: words.value.trim() });
      dialog.close();
      note(`Mentioned to ${done.session}. Press Enter there.`);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  };
  const lines = sessions.map((s) =>
    h(
      "li",
      {},
      h("span", { text: describe(s) }),
      target ? h("button", { type: "button", class: "button", text: `Mention ${target.name}`, testid: "mention", onclick: () => void mention(s) }) : null,
    ),
  );
  const close = h("button", { type: "button", class: "button", text: "Close", onclick: () => dialog.close() });
  const pause = h("button", { type: "button", class: "button", text: paused ? "Resume sharing" : "Pause sharing", testid: "share", onclick: () => void share(connection, !paused).then((done) => done && dialog.close()) });
  const told = paused ? "Sharing is paused: agents are not told what you look at." : sessions.length > 0 ? `${sessions.some(untold) ? "The others are" : "They are"} told your open files, cursor, selection and problems; pollux share changes that.` : "";
  const dialog = dialogFrame(
    "Connected CLIs",
    "sessions-dialog",
    lines.length > 0 ? h("ul", { class: "rules" }, ...lines) : h("p", { text: "None. Start gemini in a terminal in this folder; /ide enable switches its IDE mode on." }),
    lines.length > 0 && target ? words : null,
    h("p", { text: told }),
    h("div", { class: "dialog-buttons" }, pause, close),
  );
  const done = modal(dialog);
  close.focus();
  await done;
}
