// The PromQL editor: CodeMirror with completion, linting and hover.
//
// It lives in a shadow root: there CodeMirror sets its styles through adoptedStyleSheets, while in the document
// it would add <style> elements, which the Content-Security-Policy forbids.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, insertNewlineAndIndent } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField, type Transaction } from "@codemirror/state";
import { Decoration, EditorView, highlightSpecialChars, hoverTooltip, keymap, placeholder, tooltips, type DecorationSet, type Tooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { PromQLExtension } from "@prometheus-io/codemirror-promql";
import { aggregateOpTerms, functionIdentifierTerms } from "@prometheus-io/codemirror-promql/dist/esm/complete/promql.terms";
import { metadataOf } from "./api";
import { h } from "./dom";
import { pastQueries } from "./history";

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "13.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { caretColor: "var(--accent)", fontFamily: "var(--mono)", padding: "8px 0", lineHeight: "1.5" },
  ".cm-scroller": { fontFamily: "var(--mono)", overflowX: "auto" },
  ".cm-line": { padding: "0 10px" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "var(--select) !important" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--select)", color: "inherit", outline: "1px solid var(--line-strong)" },
  ".cm-nonmatchingBracket": { color: "var(--bad)" },
  ".cm-server-error": { textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px", backgroundColor: "var(--bad-soft)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lintPoint:after": { borderBottomColor: "var(--bad)" },
  ".cm-diagnostic": { padding: "6px 10px", borderLeft: "3px solid var(--bad)", fontFamily: "var(--sans)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line-strong)", borderRadius: "6px", boxShadow: "var(--shadow)", overflow: "hidden", zIndex: "60" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "18em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px 3px 6px", display: "flex", gap: "8px", alignItems: "baseline" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { marginLeft: "auto", fontStyle: "normal", opacity: "0.75", fontFamily: "var(--sans)", fontSize: "11.5px" },
  ".cm-completionIcon": { width: "1em", opacity: "0.6", paddingRight: "0" },
  ".cm-completionIcon-constant:after": { content: "'∿'" },
  ".cm-completionIcon-function:after": { content: "'ƒ'" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 10px", maxWidth: "340px", fontSize: "12.5px", fontFamily: "var(--sans)", lineHeight: "1.45" },
  ".hint": { padding: "8px 11px", maxWidth: "420px", fontFamily: "var(--sans)", fontSize: "12.5px", lineHeight: "1.45" },
  ".hint b": { fontFamily: "var(--mono)", fontWeight: "600", wordBreak: "break-all" },
  ".hint i": { fontStyle: "normal", color: "var(--muted)", marginLeft: "8px" },
  ".hint p": { margin: "4px 0 0" },
});

const colors = HighlightStyle.define([
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.labelName, color: "var(--code-label)" },
  { tag: [tags.operator, tags.arithmeticOperator, tags.compareOperator], color: "var(--muted)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

// ---- where the server found the error

const setError = StateEffect.define<{ from: number; to: number } | null>();

const errorField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, tr) {
    if (tr.docChanged) marks = Decoration.none;
    for (const effect of tr.effects) {
      if (!effect.is(setError)) continue;
      marks = effect.value && effect.value.to > effect.value.from ? Decoration.set([Decoration.mark({ class: "cm-server-error" }).range(effect.value.from, effect.value.to)]) : Decoration.none;
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export interface ErrorPlace {
  line: number;
  column: number;
}

// "1:6: parse error: ..." → where.
export function placeOf(message: string): ErrorPlace | null {
  const m = /(?:^|\s)(\d+):(\d+): /.exec(message);
  return m ? { line: Number(m[1]), column: Number(m[2]) } : null;
}

// The word at a place, at least one character if there is any.
export function wordAt(text: string, place: ErrorPlace): { from: number; to: number } {
  let lineStart = 0;
  for (let line = 1; line < place.line; line++) {
    const next = text.indexOf("\n", lineStart);
    if (next < 0) break;
    lineStart = next + 1;
  }
  let from = Math.min(lineStart + Math.max(0, place.column - 1), text.length);
  const word = /^[\w:]+/.exec(text.slice(from));
  const to = Math.min(text.length, from + (word ? word[0].length : 1));
  if (from === to && from > 0) from--;
  return { from, to };
}

// ---- hover

const terms = new Map([...functionIdentifierTerms, ...aggregateOpTerms].map((term) => [term.label, term]));

function hint(name: string, detail: string, text: string): HTMLElement {
  return h("div", { class: "hint" }, h("b", {}, name), detail && h("i", {}, detail), text && h("p", {}, text));
}

async function describe(name: string, node: string): Promise<HTMLElement | null> {
  if (node === "FunctionIdentifier" || terms.has(name)) {
    const term = terms.get(name);
    if (term) return hint(name, term.detail, term.info);
  }
  if (node !== "Identifier") return null;
  const found = await metadataOf(name);
  return found ? hint(name, found.type + (found.unit ? `, ${found.unit}` : ""), found.help) : hint(name, "metric", "Nothing is known about its type; the sender gave no metadata.");
}

const hover = hoverTooltip(async (view, pos, side): Promise<Tooltip | null> => {
  let node = syntaxTree(view.state).resolveInner(pos, side);
  if (node.firstChild && node.name !== "Identifier") return null;
  if (node.name !== "Identifier" && node.parent && /FunctionIdentifier|AggregateOp/.test(node.parent.name)) node = node.parent;
  const { from, to } = node;
  const dom = await describe(view.state.sliceDoc(from, to), node.name);
  return dom && { pos: from, end: to, above: true, create: () => ({ dom }) };
});

// Typing over a selection. Left to itself the browser keeps the look of what it replaces in a style attribute, which
// the policy forbids (and reports), before CodeMirror throws that away.
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { from, to, empty } = view.state.selection.main;
  const text = event.data;
  if (event.inputType !== "insertText" || event.isComposing || empty || !text) return false;
  event.preventDefault();
  const insert = (): Transaction => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handler) => handler(view, from, to, text, insert))) view.dispatch(insert());
  return true;
}

// ---- the editor

export interface EditorOptions {
  text: string;
  label: string;
  run: () => void;
  changed: (text: string) => void;
}

// codemirror-promql writes absolute paths; the page may lie below a prefix.
const fetchHere = (resource: RequestInfo, init?: RequestInit): Promise<Response> =>
  fetch(typeof resource === "string" ? resource.replace(/^\//, "") : resource, init);

const promql = new PromQLExtension().setComplete({ remote: { fetchFn: fetchHere, httpErrorHandler: () => undefined, cache: { maxAge: 60e3 } } });

export class Editor {
  readonly dom: HTMLElement;
  private readonly view: EditorView;

  constructor(options: EditorOptions) {
    this.dom = h("div", { class: "editor" });
    const root = this.dom.attachShadow({ mode: "open" });
    let past = -1;
    const step = (by: number): boolean => {
      const list = pastQueries();
      past = Math.max(-1, Math.min(list.length - 1, past + by));
      this.text = past < 0 ? "" : list[past]!;
      return true;
    };
    const keys = [
      { key: "Enter", run: () => (options.run(), true) },
      { key: "Mod-Enter", run: () => (options.run(), true) },
      { key: "Shift-Enter", run: insertNewlineAndIndent },
      { key: "Alt-ArrowUp", run: () => step(1) },
      { key: "Alt-ArrowDown", run: () => step(-1) },
      { key: "Escape", run: (view: EditorView) => (view.contentDOM.blur(), true) },
    ];
    this.view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: options.text,
        extensions: [
          theme,
          highlightSpecialChars(),
          history(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          autocompletion({ icons: true, maxRenderedOptions: 60 }),
          tooltips({ position: "fixed" }),
          syntaxHighlighting(colors),
          EditorView.lineWrapping,
          placeholder("A PromQL expression, for example  rate(http_requests_total[5m])"),
          EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
          Prec.highest(keymap.of(completionKeymap)),
          Prec.high(keymap.of(keys)),
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap]),
          promql.asExtension(),
          hover,
          errorField,
          EditorView.domEventHandlers({ beforeinput: typeOver }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) options.changed(update.state.doc.toString());
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: text.length } });
  }

  focus(): void {
    this.view.focus();
  }

  markError(place: ErrorPlace | null): void {
    this.view.dispatch({ effects: setError.of(place && wordAt(this.text, place)) });
  }

  destroy(): void {
    this.view.destroy();
  }
}
