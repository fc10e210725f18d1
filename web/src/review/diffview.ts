import { getChunks, MergeView, originalDocChangeEffect, unifiedMergeView, type DiffConfig } from "@codemirror/merge";
import { ChangeSet, Compartment, EditorState, Text, Transaction, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine } from "@codemirror/view";
import { minimalChanges } from "../core/changes";
import { lineDiff } from "../core/linediff";
import { Signal } from "../core/signal";
import { baseExtensions, isHuge, loadLanguage, writingExtensions } from "../editor/setup";
import { countLines, hunkAt, nextHunk, revertHunk, type Hunk } from "./hunks";
import { wholeBlocks } from "./blocks";
import { conflictMarks, markPlaces } from "./conflict";
import { hunkGutter, isKept, setKept } from "./kept";
import type { Place } from "../net/protocol";

/** What a diff view shows. */
export interface DiffContent {
  path: string;
  old: string;
  text: string;
  /** Whether the right side may be edited. */
  editable: boolean;
  oldLabel: string;
  newLabel: string;
}

/** How the two texts are laid out. */
export type Layout = "side" | "unified";

/** Where the user is among the changes, and what they amount to. */
export interface DiffSummary {
  hunks: number;
  current: number;
  kept: number;
  added: number;
  removed: number;
}

const fold = { margin: 3, minSize: 6 };

const diffConfig: DiffConfig = { override: lineDiff };

/**
 * One diff on the page, side by side or unified: the old text read-only, the proposal editable. It lives as long as
 * its proposal, also while hidden, so that undo history, agreements and scroll position survive a look elsewhere.
 */
export class DiffView {
  readonly element = document.createElement("div");
  /** The right text changed by the user's hand. */
  readonly edited = new Signal();
  /** The summary may have changed. */
  readonly moved = new Signal();
  layout: Layout;
  collapsed = true;
  private merge: MergeView | null = null;
  private right!: EditorView;
  private readonly collapse = new Compartment();
  private old: Text;
  private readonly huge: boolean;
  private places: readonly Place[] = [];

  constructor(
    private readonly content: DiffContent,
    layout: Layout,
  ) {
    this.element.className = "diff";
    this.old = Text.of(content.old.split("\n"));
    this.huge = isHuge(content.old, content.text);
    this.layout = this.allowed(layout);
    this.build(content.text);
  }

  /** Huge texts stay side by side: the unified layout would put every removed line into the page. */
  private allowed(layout: Layout): Layout {
    return this.huge ? "side" : layout;
  }

  /** The right text as it is now. */
  get text(): string {
    return this.right.state.doc.toString();
  }

  /** The length of the right text in UTF-16 units. */
  get length(): number {
    return this.right.state.doc.length;
  }

  /** The editor of the right text. */
  get editor(): EditorView {
    return this.right;
  }

  private get hunks(): readonly Hunk[] {
    return getChunks(this.right.state)?.chunks ?? [];
  }

  private build(text: string): void {
    const { path, editable, oldLabel, newLabel } = this.content;
    const right: Extension = [
      editable ? hunkGutter({ keep: (c) => this.toggleKept(c), revert: (c) => this.revert(c) }) : [],
      baseExtensions(text, newLabel, this.huge),
      wholeBlocks,
      conflictMarks,
      editable ? [writingExtensions(this.huge), highlightActiveLine()] : EditorState.readOnly.of(true),
      this.huge ? [] : EditorView.lineWrapping,
      EditorView.updateListener.of((u) => {
        if (u.docChanged && !u.transactions.every((tr) => tr.annotation(Transaction.remote))) this.edited.emit();
        if (u.docChanged || u.selectionSet || u.transactions.some((tr) => tr.effects.length > 0)) this.moved.emit();
      }),
    ];
    if (this.layout === "side") {
      const left = [baseExtensions(this.content.old, oldLabel, this.huge), wholeBlocks, EditorState.readOnly.of(true), this.huge ? [] : EditorView.lineWrapping];
      this.merge = new MergeView({
        a: { doc: this.old, extensions: left },
        b: { doc: text, extensions: right },
        parent: this.element,
        gutter: true,
        diffConfig,
        ...(this.collapsed ? { collapseUnchanged: fold } : {}),
      });
      this.right = this.merge.b;
      const { a } = this.merge;
      a.contentDOM.dataset.testid = "diff-old";
      loadLanguage(path, this.huge, (spec) => a.dispatch(spec));
    } else {
      this.merge = null;
      this.right = new EditorView({
        parent: this.element,
        doc: text,
        extensions: [right, this.collapse.of(this.unified(this.collapsed))],
      });
    }
    this.right.contentDOM.dataset.testid = "diff-new";
    if (this.places.length > 0) this.setConflict(this.places);
    const { right: view } = this;
    loadLanguage(path, this.huge, (spec) => {
      view.dispatch(spec);
      if (view === this.right && !this.merge) this.redrawDeleted();
    });
    this.element.dataset.layout = this.layout;
  }

  /** Draws the deleted lines of the unified layout anew: they keep the colours of when they were first drawn. */
  private redrawDeleted(): void {
    for (const extension of [[], this.unified(this.collapsed)]) this.right.dispatch({ effects: this.collapse.reconfigure(extension) });
  }

  private unified(collapsed: boolean): Extension {
    return unifiedMergeView({
      original: this.old,
      mergeControls: false,
      gutter: true,
      diffConfig,
      ...(collapsed ? { collapseUnchanged: fold } : {}),
    });
  }

  /** Lays the diff out anew, keeping the text and the cursor. */
  setLayout(layout: Layout): void {
    if (this.allowed(layout) === this.layout) return;
    const { text } = this;
    const head = this.right.state.selection.main.head;
    const hadFocus = this.right.hasFocus;
    this.destroy();
    this.element.replaceChildren();
    this.layout = layout;
    this.build(text);
    this.right.dispatch({ selection: { anchor: Math.min(head, this.length) } });
    if (hadFocus) this.right.focus();
    this.moved.emit();
  }

  /** Folds or unfolds what did not change. */
  toggleCollapsed(): void {
    this.collapsed = !this.collapsed;
    if (this.merge) this.merge.reconfigure({ collapseUnchanged: this.collapsed ? fold : undefined });
    else this.right.dispatch({ effects: this.collapse.reconfigure(this.unified(this.collapsed)) });
    this.moved.emit();
  }

  /** Takes over a text from elsewhere by minimal changes, without it counting as this user's edit. */
  setText(text: string): void {
    const changes = minimalChanges(this.text, text);
    if (changes.length === 0) return;
    this.right.dispatch({ changes, annotations: [Transaction.remote.of(true), Transaction.addToHistory.of(false)] });
  }

  /** The file has become another: the proposal is shown on that, and keeps its undo history. */
  setOld(old: string): void {
    const changes = minimalChanges(this.content.old, old);
    if (changes.length === 0) return;
    const set = ChangeSet.of(changes, this.old.length);
    this.content.old = old;
    this.old = set.apply(this.old);
    if (this.merge) this.merge.a.dispatch({ changes: set });
    else this.right.dispatch({ effects: originalDocChangeEffect(this.right.state, set) });
    this.moved.emit();
  }

  /** Marks the lines that the file has changed as well. */
  setConflict(places: readonly Place[]): void {
    this.places = places;
    this.right.dispatch({ effects: markPlaces.of(places) });
  }

  /** Where the user is among the changes. */
  summary(): DiffSummary {
    const { hunks } = this;
    const { state } = this.right;
    const kept = this.content.editable ? hunks.filter((c) => isKept(state, c)).length : 0;
    return { hunks: hunks.length, current: hunkAt(hunks, state.selection.main.head), kept, ...countLines(hunks, this.old, state.doc) };
  }

  /** Goes to the next or previous change; `undecided` leaves out what was agreed to, while anything else is left. */
  go(step: 1 | -1, undecided = false): boolean {
    const { state } = this.right;
    const skip = undecided ? (c: Hunk) => isKept(state, c) : undefined;
    const hunk = this.hunks[nextHunk(this.hunks, state.selection.main.head, step, skip)];
    if (!hunk) return false;
    this.goTo(hunk);
    return true;
  }

  /** Puts the cursor at the first change, without asking for the focus. */
  goToFirst(): void {
    const hunk = this.hunks[0];
    if (hunk) this.goTo(hunk);
  }

  private goTo(hunk: Hunk): void {
    const at = Math.min(hunk.fromB, this.length);
    this.right.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }), userEvent: "select.hunk" });
  }

  private here(): Hunk | undefined {
    return this.hunks[hunkAt(this.hunks, this.right.state.selection.main.head)];
  }

  /** Brings the old lines of the change at the cursor back. */
  revertHere(): boolean {
    const hunk = this.here();
    if (hunk) this.revert(hunk);
    return hunk !== undefined;
  }

  /** Agrees to the change at the cursor, or takes that back, and goes on to the next. */
  keepHere(): boolean {
    const hunk = this.here();
    if (hunk) this.toggleKept(hunk);
    return hunk !== undefined;
  }

  private revert(hunk: Hunk): void {
    if (!this.content.editable) return;
    const changes = revertHunk(hunk, this.old, this.right.state.doc);
    const anchor = Math.min(changes.from, this.length - (changes.to - changes.from) + changes.insert.length);
    this.right.dispatch({ changes, selection: { anchor }, userEvent: "revert" });
  }

  private toggleKept(hunk: Hunk): void {
    if (!this.content.editable) return;
    const { state } = this.right;
    const from = Math.min(hunk.fromB, state.doc.length);
    const to = Math.min(Math.max(hunk.fromB, hunk.toB - 1), state.doc.length);
    const kept = !isKept(state, hunk);
    this.right.dispatch({ effects: setKept.of({ from, to, kept }), selection: { anchor: from } });
    if (kept) this.go(1, true);
  }

  /** Gives the right side the focus. */
  focus(): void {
    this.right.focus();
  }

  /** Ends the editors. */
  destroy(): void {
    if (this.merge) this.merge.destroy();
    else this.right.destroy();
  }
}
