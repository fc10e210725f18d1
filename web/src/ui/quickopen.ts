import { dirName, displayPath, nameOf } from "../core/paths";
import { debounce } from "../core/throttle";
import type { Connection } from "../net/connection";
import { messageOf, type Root } from "../net/protocol";
import { dialogFrame, modal, modalIsOpen } from "./dialogs";
import { h } from "./dom";

const limit = 50;
/** Milliseconds until the page asks again, when the answer came from a list that is being made anew. */
const again = 300;

/** Asks for a file by a few letters of its path; null when dismissed. A combobox with a listbox, by the ARIA practices. */
export async function quickOpen(connection: Connection, roots: readonly Root[], recent: readonly string[]): Promise<string | null> {
  if (modalIsOpen()) return null;
  let files: string[] = [];
  let at = 0;
  let asked = 0;
  /** What the list answers. */
  let answered: string | null = null;
  const input = h("input", {
    type: "text",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "quick-list",
    "aria-label": "File name",
    placeholder: "Part of a file’s name or path",
    autocomplete: "off",
    spellcheck: "false",
    testid: "quick-input",
  });
  const list = h("ul", { role: "listbox", id: "quick-list", "aria-label": "Files", testid: "quick-list" });
  const hint = h("p", { class: "dim", role: "status" });
  const dialog = dialogFrame("Open a file", "quick-open", input, list, hint);
  dialog.classList.add("quick");

  const draw = () => {
    list.replaceChildren(
      ...files.map((path, i) => {
        const option = h(
          "li",
          { role: "option", id: `quick-${i}`, "aria-selected": String(i === at), testid: "quick-item", "data-path": path, onclick: () => dialog.close(path) },
          h("span", { class: "queue-name", text: nameOf(path) }),
          h("span", { class: "queue-detail", text: displayPath(dirName(path), roots) }),
        );
        return option;
      }),
    );
    if (files.length > 0) input.setAttribute("aria-activedescendant", `quick-${at}`);
    else input.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const search = async () => {
    const query = input.value.trim();
    const number = ++asked;
    try {
      const found = query ? await connection.request("tree/find", { query, limit }) : { files: [...recent], truncated: false, old: false };
      if (number !== asked) return;
      files = found.files ?? [];
      at = answered === query ? Math.min(at, Math.max(files.length - 1, 0)) : 0;
      answered = query;
      if (found.old) setTimeout(() => number === asked && dialog.open && void search(), again); // files have just come or gone
      hint.textContent = files.length === 0 ? (query ? "No file matches." : "") : found.truncated ? `The best ${files.length} matches` : "";
    } catch (e) {
      hint.textContent = messageOf(e);
    }
    draw();
  };
  /** Takes the marked file of what was typed, however quickly Enter followed: never of a list that answers something else. */
  const choose = async () => {
    if (answered !== input.value.trim()) await search();
    const path = answered === input.value.trim() ? files[at] : undefined;
    if (path) dialog.close(path);
  };
  const soon = debounce(() => void search(), 50);
  input.addEventListener("input", soon);
  input.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (files.length > 0) at = (at + (e.key === "ArrowDown" ? 1 : -1) + files.length) % files.length;
      draw();
    } else if (e.key === "Enter") {
      soon.cancel();
      void choose();
    } else return;
    e.preventDefault();
  });
  void search();
  const answer = modal(dialog);
  input.focus();
  return (await answer) || null;
}
