import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { Signal } from "../core/signal";
import type { Doc } from "../files/documents";
import type { ContextReport, Position } from "../net/protocol";
import { fileExtensions, loadLanguage, nonce, plain } from "./setup";

/** The 0-based position of an offset, in UTF-16 units. */
export function positionAt(state: EditorState, offset: number): Position {
  const line = state.doc.lineAt(offset);
  return { line: line.number - 1, character: offset - line.from };
}

/** The offset of a 0-based position, clipped to the document. */
export function offsetAt(state: EditorState, position: Position): number {
  const line = state.doc.line(Math.max(1, Math.min(state.doc.lines, position.line + 1)));
  return Math.min(line.to, line.from + Math.max(0, position.character));
}

/** Selected text beyond this many units is not worth sending; the agent's side cuts at 16,384 (SPEC C-5). */
const selectionLimit = 20_000;

/** What the context says about the shown document. */
export function activeContext(doc: Doc): NonNullable<ContextReport["active"]> {
  const { state } = doc;
  const ranges = [state.selection.main, ...state.selection.ranges.filter((r) => r !== state.selection.main)];
  return {
    path: doc.path,
    cursor: positionAt(state, state.selection.main.head),
    selections: ranges
      .filter((r) => !r.empty)
      .map((r) => ({
        start: positionAt(state, r.from),
        end: positionAt(state, r.to),
        text: state.sliceDoc(r.from, Math.min(r.to, r.from + selectionLimit)),
      })),
  };
}

/** The editor's place in the page: one view that shows one of the open documents at a time. */
export class EditorPane {
  /** The shown document changed in text or selection, or another one is shown. */
  readonly updated = new Signal<{ doc: Doc; typed: boolean }>();
  /** The document shown now. */
  doc: Doc | null = null;
  private readonly view: EditorView;

  constructor(readonly element: HTMLElement) {
    this.view = new EditorView({ parent: element, extensions: nonce() });
  }

  /** Makes the state of a new document. */
  makeState = (path: string, text: string, readOnly: boolean): EditorState =>
    EditorState.create({
      doc: text,
      extensions: [
        fileExtensions(path, text, readOnly),
        EditorView.updateListener.of((u) => {
          const doc = this.doc;
          if (!doc || doc.view !== u.view) return;
          doc.state = u.state;
          const typed = u.transactions.some((tr) => tr.isUserEvent("input") || tr.isUserEvent("delete"));
          if (u.docChanged || u.selectionSet) this.updated.emit({ doc, typed });
        }),
      ],
    });

  /** Shows a document; null leaves the pane empty. */
  show(doc: Doc | null): void {
    if (doc === this.doc) return;
    const before = this.doc;
    if (before) {
      before.scrollTop = this.view.scrollDOM.scrollTop;
      before.view = null;
    }
    this.doc = doc;
    if (!doc) return;
    this.view.setState(doc.state);
    doc.view = this.view;
    const { scrollTop } = doc;
    this.view.requestMeasure({ read: () => null, write: () => (this.view.scrollDOM.scrollTop = scrollTop) });
    this.updated.emit({ doc, typed: false });
  }

  /** Loads the colours of a document that was just opened. */
  colour(doc: Doc): void {
    loadLanguage(doc.path, doc.state.facet(plain), (spec) => doc.dispatch(spec));
  }

  /** Puts the cursor at a place and shows it. */
  goTo(position: Position): void {
    const at = offsetAt(this.view.state, position);
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
  }

  /** Gives the editor the focus. */
  focus(): void {
    this.view.focus();
  }

  /** The view, for commands on the shown document. */
  get editorView(): EditorView {
    return this.view;
  }
}
