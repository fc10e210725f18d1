import { dialogFrame, modal, modalIsOpen } from "./dialogs";
import { h, keyName } from "./dom";

const sections: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["Mod-p", "Open a file by name"],
      ["Mod-s", "Save"],
      ["Alt-w", "Close the tab"],
      ["Alt-PageDown", "Next tab; Alt+PageUp the previous"],
      ["Mod-b", "Show or hide the side bar"],
      ["Mod-Shift-e", "Go to the file tree"],
      ["F6", "Go on to the next part of the page"],
      ["Alt-p", "Tell agents nothing of what you look at; again resumes"],
      ["F9", "Show the next waiting proposal; Shift+F9 the previous"],
      ["F1", "This list; also ? outside of text"],
    ],
  ],
  [
    "Proposals",
    [
      ["F8", "Next change; Shift+F8 the previous (also Alt+↓ and Alt+↑)"],
      ["Alt-Enter", "Keep this change and go on"],
      ["Alt-Backspace", "Revert this change"],
      ["Mod-Enter", "Accept the proposal"],
      ["Escape", "Reject it; asks first when you edited it"],
    ],
  ],
  [
    "Editor",
    [
      ["Mod-f", "Find and replace"],
      ["Mod-g", "Next match"],
      ["Mod-Alt-g", "Go to a line"],
      ["Mod-d", "Select the next occurrence as well"],
      ["Mod-/", "Comment or uncomment"],
      ["Mod-Space", "Complete a word"],
      ["Mod-m", "Let Tab move the focus (Shift+Alt+M on a Mac); in a file, Escape then Tab does it once"],
    ],
  ],
  [
    "File tree",
    [
      ["F2", "Rename"],
      ["Delete", "Delete"],
      ["Shift-F10", "More for this file"],
    ],
  ],
];

/** Shows the keys. */
export async function showHelp(): Promise<void> {
  if (modalIsOpen()) return;
  const dialog = dialogFrame("Keys", "help-dialog");
  dialog.classList.add("help");
  const columns = h("div", { class: "help-columns" });
  for (const [title, keys] of sections) {
    columns.append(h("section", {}, h("h3", { text: title }), h("dl", {}, ...keys.flatMap(([key, what]) => [h("dt", {}, h("kbd", { text: keyName(key) })), h("dd", { text: what })]))));
  }
  const close = h("button", { type: "button", class: "button", text: "Close", testid: "help-close", onclick: () => dialog.close() });
  dialog.append(columns, h("div", { class: "dialog-buttons" }, close));
  const done = modal(dialog);
  close.focus();
  dialog.scrollTop = 0; // the list is read from its top, though its only button stands at its end
  await done;
}
