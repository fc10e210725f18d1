import { h, icon } from "./dom";

/** One tab: a document or one of the page's own views. */
export interface Tab {
  id: string;
  label: string;
  title: string;
  /** Told apart from others of the same label, as by its folder. */
  detail?: string;
  kind: "file" | "review" | "history";
  dirty?: boolean;
  conflict?: boolean;
  closable: boolean;
}

/** What tabs ask for. */
export interface TabActions {
  /** `focus`: the keyboard goes into what the tab shows. */
  activate(id: string, focus: boolean): void;
  close(id: string): void;
}

/** The row of tabs: a `role=tablist` whose arrows move the choice, with Delete or a middle click to close. */
export class Tabs {
  private tabs: Tab[] = [];
  private active = "";
  private drawn = "";

  constructor(
    private readonly element: HTMLElement,
    private readonly actions: TabActions,
  ) {
    element.addEventListener("keydown", (e) => this.onKey(e));
  }

  /** Shows these tabs; nothing is drawn when nothing changed. */
  show(tabs: Tab[], active: string): void {
    const key = JSON.stringify([tabs, active]);
    if (key === this.drawn) return;
    const moved = active !== this.active;
    this.drawn = key;
    this.tabs = tabs;
    this.active = active;
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(...tabs.map((t) => this.draw(t)));
    const chosen = this.chosenElement();
    if (hadFocus) chosen?.focus();
    if (moved) chosen?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private chosenElement(): HTMLElement | null {
    return this.element.querySelector<HTMLElement>('[aria-selected="true"]');
  }

  private draw(tab: Tab): HTMLElement {
    const chosen = tab.id === this.active;
    const state = tab.conflict ? ", differs from the disk" : tab.dirty ? ", unsaved" : "";
    const element = h(
      "div",
      {
        role: "tab",
        class: `tab tab-${tab.kind}${tab.dirty ? " dirty" : ""}${tab.conflict ? " conflict" : ""}`,
        tabindex: chosen ? 0 : -1,
        "aria-selected": String(chosen),
        "aria-controls": chosen ? "panes" : null,
        "aria-label": `${tab.label}${tab.detail ? `, ${tab.detail}` : ""}${state}`,
        title: tab.title,
        "data-id": tab.id,
        testid: "tab",
        onclick: () => this.actions.activate(tab.id, true),
        onauxclick: (e: MouseEvent) => {
          if (e.button === 1 && tab.closable) this.actions.close(tab.id);
        },
      },
      h("span", { class: "tab-label", text: tab.label }),
      tab.detail ? h("span", { class: "tab-detail", text: tab.detail }) : null,
    );
    if (tab.closable) {
      const close = h("span", { class: "tab-close", title: "Close (Alt+W)", testid: "tab-close", "aria-hidden": "true" }, icon("close"), h("i", {}));
      close.addEventListener("click", (e) => {
        e.stopPropagation();
        this.actions.close(tab.id);
      });
      element.append(close);
    }
    return element;
  }

  private onKey(e: KeyboardEvent): void {
    const at = this.tabs.findIndex((t) => t.id === this.active);
    const step = { ArrowRight: at + 1, ArrowLeft: at - 1 + this.tabs.length, Home: 0, End: this.tabs.length - 1 }[e.key];
    const target = step === undefined ? undefined : this.tabs[step % this.tabs.length];
    if (target) this.actions.activate(target.id, false);
    else if (e.key === "Delete" && this.tabs[at]?.closable) this.actions.close(this.active);
    else return;
    e.preventDefault();
    this.chosenElement()?.focus();
  }
}
