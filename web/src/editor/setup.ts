import { autocompletion, closeBrackets, closeBracketsKeymap, completeAnyWord, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Facet, type Extension } from "@codemirror/state";
import {
  crosshairCursor,
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
import { languageOf } from "./languages";
import { look } from "./look";

/** Above this length, in UTF-16 units, a text is shown plain. */
const hugeText = 1_000_000;
/** A text with a line above this length is shown plain: each key would cost the time of the whole line. */
const hugeLine = 30_000;

/** Whether an editor shows its text plain, as it was when the text came. */
export const plain = Facet.define<boolean, boolean>({ combine: (values) => values.some(Boolean) });

/** Whether texts that are shown together get neither colours, wrapping nor matching brackets, so that they open and answer keys at once. */
export function isHuge(...texts: readonly string[]): boolean {
  return texts.reduce((sum, text) => sum + text.length, 0) > hugeText || texts.some(hasHugeLine);
}

function hasHugeLine(text: string): boolean {
  for (let at = 0; at + hugeLine < text.length; ) {
    const end = text.lastIndexOf("\n", at + hugeLine); // the last end of a line within reach
    if (end < at) return true;
    at = end + 1;
  }
  return false;
}

/** The indentation that a text uses: a tab, or its smallest step of blanks; four blanks when it does not say. */
export function indentationOf(text: string): string {
  const steps = new Map<string, number>();
  let before = 0;
  for (const line of text.slice(0, 60_000).split("\n").slice(0, 500)) {
    const lead = /^[ \t]*/.exec(line)?.[0] ?? "";
    if (lead.length === line.length) continue;
    if (lead.startsWith("\t")) steps.set("\t", (steps.get("\t") ?? 0) + 1);
    else if (lead.length - before > 1 && lead.length - before <= 8) {
      const unit = " ".repeat(lead.length - before);
      steps.set(unit, (steps.get(unit) ?? 0) + 1);
    }
    before = lead.startsWith("\t") ? 0 : lead.length;
  }
  let best = "    ";
  let most = 0;
  for (const [unit, n] of steps) if (n > most) [best, most] = [unit, n];
  return best;
}

/** Hands the page's nonce to CodeMirror, whose style sheets the content security policy would refuse otherwise. Every view needs it from its start. */
export function nonce(): Extension {
  return EditorView.cspNonce.of(document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "");
}

const language = new Compartment();

/** What every editor of the page has, editable or not: look, gutter, selection, search, keys. */
export function baseExtensions(text: string, label: string, huge = isHuge(text)): Extension {
  return [
    nonce(),
    plain.of(huge),
    look,
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    dropCursor(),
    EditorState.allowMultipleSelections.of(true),
    huge ? [] : bracketMatching(),
    rectangularSelection(),
    crosshairCursor(),
    search({ top: true }),
    huge ? [] : highlightSelectionMatches(),
    indentUnit.of(indentationOf(text)),
    EditorState.tabSize.of(4),
    language.of([]),
    EditorView.contentAttributes.of({ "aria-label": label, "data-testid": "editor-content" }),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap]),
  ];
}

/** What an editor to write in has besides. */
export function writingExtensions(huge: boolean): Extension {
  return [
    indentOnInput(),
    closeBrackets(),
    huge ? [] : autocompletion({ override: [completeAnyWord], activateOnTyping: false }),
    keymap.of([indentWithTab]),
  ];
}

/** The extensions of a file's editor. */
export function fileExtensions(path: string, text: string, readOnly: boolean): Extension {
  const huge = isHuge(text);
  return [
    baseExtensions(text, `Editor, ${path}`, huge),
    writingExtensions(huge),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    huge ? [] : foldGutter(),
    readOnly ? EditorState.readOnly.of(true) : [],
  ];
}

/** Loads the colours for a path and hands them to the editor once they are there; nothing for huge or plain texts. */
export function loadLanguage(path: string, huge: boolean, dispatch: (spec: { effects: ReturnType<Compartment["reconfigure"]> }) => void): void {
  if (huge) return;
  languageOf(path)
    ?.load()
    .then((support) => dispatch({ effects: language.reconfigure(support) }))
    .catch(() => undefined); // offline: plain text until the file is opened again
}
