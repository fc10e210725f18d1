import { dirName, joinPath, nameOf } from "../core/paths";
import type { Connection } from "../net/connection";
import { messageOf, type Rule } from "../net/protocol";
import { announce, note } from "../ui/announce";
import { dialogFrame, modal, prompt } from "../ui/dialogs";
import { h, icon } from "../ui/dom";
import { openMenu, type MenuItem } from "../ui/menu";
import type { Diff } from "./diffs";

const modes: Record<Rule["mode"], string> = {
  ask: "Ask",
  accept: "Accept without asking",
  terminal: "Leave to the terminal",
};

/** The pattern that fits one path alone, whatever characters it has. */
export function exactly(path: string): string {
  return path.replace(/[*?]/g, "[$&]");
}

/** A rule as a sentence. */
export function ruleSentence(rule: Rule): string {
  const what = [rule.owner ? `from ${rule.owner}` : "", rule.pattern ? `for ${rule.pattern}` : ""].filter(Boolean).join(", ");
  return `${modes[rule.mode]}: ${what || "everything"}`;
}

/** The rules that do something: an `ask` matters only as an exception from a wider rule. */
export function activeRules(rules: readonly Rule[]): Rule[] {
  const wider = (r: Rule) => rules.some((o) => o.mode !== "ask" && o !== r && (!o.owner || o.owner === r.owner) && (!o.pattern || o.pattern === r.pattern));
  return rules.filter((r) => r.mode !== "ask" || wider(r));
}

/** The user's policy (SPEC F-11): the menu that adds to it and the dialog that shows and removes it. */
export class Policy {
  private rules: Rule[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly button: HTMLButtonElement,
  ) {
    connection.on("rules/changed", ({ rules }) => this.set(rules));
    button.addEventListener("click", () => void this.showRules());
  }

  /** Shows these rules. */
  set(rules: Rule[] | null | undefined): void {
    this.rules = rules ?? [];
    const { length } = activeRules(this.rules);
    this.button.textContent = length === 0 ? "Asks about every change" : length === 1 ? "1 rule decides" : `${length} rules decide`;
    this.button.classList.toggle("active", length > 0);
  }

  /** Offers the rules that fit a proposal. */
  openMenu(diff: Diff, at: HTMLElement): void {
    const { owner, path } = diff.info;
    const name = nameOf(path);
    const add = (rule: Rule) => () => void this.add(rule);
    const items: MenuItem[] = [
      { label: "From now on, without asking" },
      { label: `Accept everything from ${owner}`, run: add({ mode: "accept", owner }), testid: "policy-accept-session" },
      { label: `Accept every change of ${name}`, run: add({ mode: "accept", pattern: exactly(path) }), testid: "policy-accept-file" },
      { label: "Accept changes by a pattern…", run: () => void this.addPattern(path), testid: "policy-accept-pattern" },
      { label: "In the terminal instead" },
      { label: `Leave ${owner} to its terminal`, run: add({ mode: "terminal", owner }), testid: "policy-terminal-session" },
      { label: "Leave all changes to the terminal", run: add({ mode: "terminal" }), testid: "policy-terminal-all" },
      { label: "Rules" },
      { label: "Show and remove rules…", run: () => void this.showRules(), testid: "policy-rules" },
    ];
    openMenu("Policy", items, at);
  }

  private async addPattern(path: string): Promise<void> {
    const pattern = await prompt("Accept changes by a pattern", "Paths, with * ? and ** for any depth", joinPath(joinPath(exactly(dirName(path)), "**"), "*"));
    if (pattern) await this.add({ mode: "accept", pattern });
  }

  private async add(rule: Rule): Promise<void> {
    try {
      const { rules } = await this.connection.request("policy/set", rule);
      this.set(rules);
      if (rule.mode === "ask") announce("Rule removed");
      else note(`${ruleSentence(rule)}.`, { action: "Undo", onAction: () => void this.add({ ...rule, mode: "ask" }) });
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }

  private async showRules(): Promise<void> {
    const list = h("ul", { class: "rules", testid: "rules" });
    const draw = () => {
      const rules = activeRules(this.rules);
      const lines = rules.map((rule) =>
        h(
          "li",
          {},
          h("span", { text: ruleSentence(rule) }),
          h(
            "button",
            { type: "button", class: "icon-button", "aria-label": `Remove rule: ${ruleSentence(rule)}`, testid: "rule-remove", onclick: () => void this.add({ ...rule, mode: "ask" }).then(draw) },
            icon("close"),
          ),
        ),
      );
      list.replaceChildren(...(lines.length > 0 ? lines : [h("li", { class: "empty", text: "No rules: pollux asks about every change." })]));
    };
    draw();
    const dialog = dialogFrame("Rules for proposals", "rules-dialog", h("p", { text: "The narrowest rule that fits decides; of equals the latest. Add rules from a proposal’s “Always…” menu." }), list);
    const close = h("button", { type: "button", class: "button", text: "Close", testid: "rules-close", onclick: () => dialog.close() });
    dialog.append(h("div", { class: "dialog-buttons" }, close));
    const done = modal(dialog);
    close.focus();
    await done;
  }
}
