// Elements without a framework: h() builds, fill() replaces. Data only ever becomes text nodes and
// attributes, never markup, so nothing that a label holds can turn into an element.

export type Child = Node | string | number | null | undefined | false | Child[];

interface Props {
  class?: string;
  style?: Record<string, string>;
  on?: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
  [attribute: string]: unknown;
}

function add(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function apply(element: HTMLElement | SVGElement, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "style") {
      for (const [key, text] of Object.entries(value as Record<string, string>)) element.style.setProperty(key, text);
    } else if (name === "on") {
      for (const [event, fn] of Object.entries(value as Record<string, EventListener>)) element.addEventListener(event, fn);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  apply(element, props);
  add(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  add(element, children);
  return element;
}

export function fill(parent: Element | DocumentFragment, ...children: Child[]): void {
  parent.replaceChildren();
  add(parent, children);
}

const PATHS = {
  play: "M5 3.5v9l7-4.5z",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 4L6 8l4 4",
  right: "M6 4l4 4-4 4",
  eye: "M1.500 8S4 3.500 8 3.500 14.500 8 14.500 8 12 12.500 8 12.500 1.500 8 1.500 8zM8 6.200a1.800 1.800 0 100 3.600 1.800 1.800 0 000-3.600z",
  hidden: "M2 2l12 12M4 4.800C2.400 6 1.500 8 1.500 8S4 12.500 8 12.500c1.200 0 2.300-.4 3.200-.9M6.500 3.700c.5-.1 1-.2 1.500-.2 4 0 6.500 4.500 6.500 4.500s-.5 1-1.500 2",
  clock: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 4.500V8l2.500 1.500",
  history: "M2.500 8A5.500 5.500 0 108 2.500c-2 0-3.600 1-4.600 2.500M3 2.500V5h2.500M8 5v3l2 1.500",
  refresh: "M13.500 8A5.500 5.500 0 118 2.500c2 0 3.600 1 4.600 2.500M13 2.500V5h-2.500",
  link: "M6.500 9.500l3-3M7 4.500L8.500 3a3 3 0 014.200 4.200L11.200 8.700M9 11.500L7.500 13a3 3 0 01-4.200-4.200L4.800 7.300",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1.100 1.100M11.900 11.900L13 13M3 13l1.100-1.100M11.900 4.100L13 3",
  moon: "M13 9.500A5.500 5.500 0 116.500 3 4.500 4.500 0 0013 9.500z",
  auto: "M8 2.500a5.500 5.500 0 100 11zM8 2.500a5.500 5.500 0 010 11",
  format: "M2.500 4h11M2.500 8h7M2.500 12h9",
  search: "M7 2.500a4.500 4.500 0 100 9 4.500 4.500 0 000-9zM10.500 10.500L14 14",
  keys: "M1.500 4h13v8h-13zM4 6.500h.5M7 6.500h.5M10 6.500h.5M5 9.500h6",
  stop: "M4.500 4.500h7v7h-7z",
  warn: "M8 2.500l6 10.500H2zM8 6.500v3M8 11v.5",
};

export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGElement {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

interface ButtonOptions {
  icon?: IconName;
  text?: string;
  title?: string; // also the accessible name of a button without text
  class?: string;
  pressed?: boolean;
  click: (event: MouseEvent) => void;
}

export function button(options: ButtonOptions): HTMLButtonElement {
  return h(
    "button",
    {
      type: "button",
      class: options.class ?? (options.text ? "button" : "button bare"),
      title: options.title,
      "aria-label": options.text ? undefined : options.title,
      "aria-pressed": options.pressed === undefined ? undefined : String(options.pressed),
      on: { click: options.click },
    },
    options.icon && icon(options.icon),
    options.text && h("span", {}, options.text),
  );
}

// What is said to those who don't see the screen.
const live = h("div", { class: "unseen", role: "status", "aria-live": "polite" });

export function announce(text: string): void {
  if (!live.isConnected) document.body.append(live);
  live.textContent = text;
}

// A panel below a button: opens on click, closes on Escape, on a click elsewhere, or when focus leaves.
export function popover(trigger: HTMLButtonElement, content: () => HTMLElement, align: "left" | "right" = "left"): HTMLElement {
  const holder = h("div", { class: `popover-holder ${align}` }, trigger);
  let open: HTMLElement | null = null;
  trigger.setAttribute("aria-haspopup", "dialog");
  trigger.setAttribute("aria-expanded", "false");
  const close = (refocus: boolean): void => {
    open?.remove();
    open = null;
    trigger.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside, true);
    if (refocus) trigger.focus();
  };
  const outside = (event: Event): void => {
    if (!event.composedPath().includes(holder)) close(false);
  };
  holder.addEventListener("close-popover", () => close(true));
  holder.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    close(true);
  });
  holder.addEventListener("focusout", (event) => {
    if (open && event.relatedTarget instanceof Node && !holder.contains(event.relatedTarget)) close(false);
  });
  trigger.addEventListener("click", () => {
    if (open) return close(true);
    open = h("div", { class: "popover", role: "dialog", "aria-label": trigger.title || trigger.textContent || "" }, content());
    holder.append(open);
    trigger.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", outside, true);
    open.querySelector<HTMLElement>("input, button, [tabindex]")?.focus();
  });
  return holder;
}

export function closePopover(inside: Element): void {
  inside.dispatchEvent(new CustomEvent("close-popover", { bubbles: true }));
}
