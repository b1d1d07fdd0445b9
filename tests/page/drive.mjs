// Drives the page in Chromium; test_page.py starts it. Prints "ok NAME" or "not ok NAME: why", one line a check.
//
// The environment says where: PAGE_BASE (the server), PAGE_MODULES (a folder with node_modules), CHROMIUM (the
// program), PAGE_SHOTS (where screenshots go), PAGE_NOW (Unix seconds: the newest sample).
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { PAGE_BASE: base, PAGE_MODULES: modules, CHROMIUM: chromiumPath, PAGE_SHOTS: shots, PAGE_NOW: now } = process.env;
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--renderer-process-limit=1"] });
const DESK = { width: 1440, height: 900 };
const PHONE = { width: 420, height: 900 };
const END = new Date(now * 1000).toISOString().slice(0, 19).replace("T", " ");

function expect(condition, what) {
  if (!condition) throw new Error(what);
}

function same(got, wanted, what) {
  expect(got === wanted, `${what}: ${JSON.stringify(wanted)} expected, got ${JSON.stringify(got)}`);
}

// ---- one page per check, watched for everything that a page must not do

const REFUSED = /the server responded with a status of (400|404|422|503|499)/; // what a check asked for wrongly, on purpose

const contexts = new Map();

// Pages that look the same share their browser context, and so its cache.
async function contextOf(options) {
  const wanted = { viewport: DESK, colorScheme: "light", ...options };
  delete wanted.refused;
  const key = JSON.stringify(wanted);
  if (!contexts.has(key)) contexts.set(key, await browser.newContext({ timezoneId: "UTC", permissions: ["clipboard-read", "clipboard-write"], ...wanted }));
  return contexts.get(key);
}

// options.refused: the check has the server refuse something on purpose.
async function open(path, options = {}) {
  const page = await (await contextOf(options)).newPage();
  page.setDefaultTimeout(12000);
  page.sins = [];
  page.on("pageerror", (error) => page.sins.push(`uncaught: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !(options.refused && REFUSED.test(message.text()))) page.sins.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base + "/")) page.sins.push(`a request left the origin: ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(base + path);
  await page.waitForSelector("main > div");
  return page;
}

// The same page, another address; waits until nothing is asked for any more.
async function visit(page, path) {
  page.sins.push(...(await page.evaluate(() => window.violations)));
  await page.goto(base + path, { waitUntil: "networkidle" });
  await page.waitForSelector("main > div");
}

async function close(page) {
  page.sins.push(...(await page.evaluate(() => window.violations)));
  if (await page.evaluate(() => "pwned" in window)) page.sins.push("a label was run as code");
  await page.close();
  expect(page.sins.length === 0, page.sins.join("; "));
}

const query = (expr, tab = 0, range = "1h") => `/graph?g0.expr=${encodeURIComponent(expr)}&g0.tab=${tab}&g0.range_input=${range}&g0.end_input=${encodeURIComponent(END)}`;

const editorText = (page, i = 0) => page.locator(".editor .cm-content").nth(i).innerText();

// Pixels of the graph that differ from its ground, by colour.
function inkOf(page, i = 0) {
  return page.locator(".plot canvas").nth(i).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Map();
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 250) continue;
      const key = `${data[at]},${data[at + 1]},${data[at + 2]}`;
      colors.set(key, (colors.get(key) ?? 0) + 1);
    }
    return [...colors].filter(([, n]) => n > 150).length;
  });
}

async function drawn(page, n = 1) {
  await page.waitForFunction((wanted) => document.querySelectorAll(".plot canvas").length >= wanted, n);
}

// So that the server has something to remember, whichever checks ran before.
async function askOnce() {
  const page = await open(query("demo_requests_total", 1));
  await page.locator(".table tbody tr").first().waitFor();
  await close(page);
}

// Takes the completion that is offered. The editor ignores a key that comes just when its list opens: nobody can have
// meant it.
async function accept(page, text) {
  await page.locator(".cm-tooltip-autocomplete li", { hasText: text }).first().waitFor();
  await page.waitForTimeout(400);
  await page.keyboard.press("Enter");
}

async function rangeLabel(page) {
  return page.locator(".range-label").innerText();
}

const checks = {
  async "typing with completion, then the graph"() {
    const page = await open("/");
    const editor = page.locator(".editor .cm-content");
    await editor.click();
    await page.keyboard.type("demo_temp");
    await accept(page, "demo_temperature_celsius");
    same(await editorText(page), "demo_temperature_celsius", "the completion");
    await page.keyboard.type("{si");
    await accept(page, "site");
    await page.keyboard.type('="');
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "oslo" }).first().waitFor();
    await page.screenshot({ path: join(shots, "completion.png") });
    await page.keyboard.type("oslo");
    await page.keyboard.press("Escape");
    await page.locator(".run").click();
    await drawn(page);
    expect((await inkOf(page)) >= 3, "the graph is empty");
    await page.locator(".legend-table tbody tr").first().waitFor();
    await close(page);
  },

  async "linting marks what is wrong, hover explains"() {
    const page = await open("/");
    await page.locator(".editor .cm-content").click();
    await page.keyboard.insertText("rate(demo_temperature_celsius)");
    await page.locator(".cm-lintRange-error").first().waitFor();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText("rate(demo_requests_total[5m])");
    await page.locator(".cm-line span", { hasText: /^rate$/ }).first().hover();
    await page.locator(".hint", { hasText: "per-second" }).waitFor();
    await close(page);
  },

  async "several series, isolated and filtered by the legend"() {
    const page = await open(query("demo_requests_total"));
    await drawn(page);
    const rows = page.locator(".legend-table tbody tr");
    same(await rows.count(), 12, "series in the legend");
    expect((await inkOf(page)) > 8, "twelve lines have few colours");
    await rows.nth(3).locator("button").click();
    same(await page.locator(".legend-table tr.off").count(), 11, "series that are off");
    await rows.nth(3).locator("button").click();
    same(await page.locator(".legend-table tr.off").count(), 0, "series that are off again");
    await page.getByLabel("Filter series").fill("i1");
    same(await rows.count(), 3, "rows that match");
    await close(page);
  },

  async "the table has the right values"() {
    const page = await open(query('demo_temperature_celsius', 1));
    const cells = await page.locator(".table tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    same(JSON.stringify(cells.sort()), JSON.stringify([["oslo", "21.25"], ["tartu", "-3.5"]]), "rows");
    await page.locator(".table th button", { hasText: "value" }).click();
    same(await page.locator(".table tbody tr").first().innerText(), "oslo\t21.25", "the greatest first");
    await page.locator(".table th button", { hasText: "value" }).click();
    same(await page.locator(".table tbody tr").first().innerText(), "tartu\t-3.5", "the least first");
    await close(page);
    const scalar = await open(query("scalar(demo_temperature_celsius{site='oslo'}) * 2", 1));
    same(await scalar.locator(".scalar b").innerText(), "42.5", "a scalar");
    await close(scalar);
    const matrix = await open(query("demo_temperature_celsius{site='oslo'}[1m]", 1));
    expect((await matrix.locator(".samples").innerText()).split("\n").length === 4, "four samples in a minute");
    await close(matrix);
  },

  async "zooming by dragging, and back"() {
    const page = await open(query("demo_requests_total"));
    await drawn(page);
    const before = page.url();
    const box = await page.locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.25, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 90, { steps: 6 });
    await page.mouse.up();
    await page.waitForFunction((old) => location.href !== old, before);
    const length = new URL(page.url()).searchParams.get("g0.range_input");
    expect(/^1[45]m/.test(length), `a quarter of an hour expected, got ${length}`);
    await page.goBack();
    await page.waitForFunction((old) => location.href === old, before);
    await close(page);
  },

  async "range picker: presets, own length, absolute, wrong ones"() {
    const page = await open(query("demo_requests_total"));
    await page.locator("button.range").click();
    await page.getByRole("button", { name: "Last 15 minutes" }).click();
    same(await rangeLabel(page), "Last 15 minutes", "a preset");
    await page.locator("button.range").click();
    await page.getByLabel("Length of the range").fill("never");
    await page.getByLabel("Length of the range").press("Enter");
    same(await page.getByLabel("Length of the range").getAttribute("aria-invalid"), "true", "a wrong length");
    await page.getByLabel("Length of the range").fill("1h30m");
    await page.getByLabel("Length of the range").press("Enter");
    same(await rangeLabel(page), "Last 1h30m", "an own length");
    await page.locator("button.range").click();
    await page.getByLabel("From", { exact: true }).fill("2026-01-02 03:04");
    await page.getByLabel("To", { exact: true }).fill("2026-01-02 03:00");
    await page.getByLabel("To", { exact: true }).press("Enter");
    await page.getByText("The end must be after the beginning.").waitFor();
    await page.getByLabel("To", { exact: true }).fill("2026-01-02 05:00:30");
    await page.screenshot({ path: join(shots, "range.png") });
    await page.getByLabel("To", { exact: true }).press("Enter");
    same(await rangeLabel(page), "2026-01-02 03:04:00 – 05:00:30", "an absolute range");
    const params = new URL(page.url()).searchParams;
    same(`${params.get("g0.range_input")} ${params.get("g0.end_input")}`, "1h56m30s 2026-01-02 05:00:30", "the range in the link");
    await page.locator(".nothing", { hasText: "No series" }).waitFor();
    await close(page);
  },

  async "auto-refresh asks again"() {
    const page = await open("/?g0.expr=demo_requests_total&g0.tab=1&refresh=1s");
    let asked = 0;
    page.on("request", (request) => (asked += request.url().endsWith("/api/v1/query") ? 1 : 0));
    await page.waitForTimeout(2600);
    expect(asked >= 2, `${asked} queries in 2.6 s`);
    await close(page);
  },

  async "a link is the whole state"() {
    const page = await open(query("demo_temperature_celsius", 1));
    await page.getByRole("button", { name: "Add query" }).click();
    await page.keyboard.insertText('sum by (code) (rate(demo_requests_total{code=~"2..|5.."}[5m]))');
    await page.keyboard.press("Escape");
    await page.locator(".run").nth(1).click();
    await drawn(page);
    await page.locator(".panel").nth(1).getByRole("button", { name: "Stacked" }).click();
    await page.locator(".panel").nth(1).getByRole("button", { name: "Move up" }).click();
    const address = page.url();
    const first = await editorText(page, 0);
    await page.screenshot({ path: join(shots, "two-queries.png"), fullPage: true });
    await close(page);
    const again = await open(address.slice(base.length));
    await drawn(again);
    same(await editorText(again, 0), first, "the first query");
    expect(first.startsWith("sum by (code)"), "the order was not kept");
    same(await editorText(again, 1), "demo_temperature_celsius", "the second query");
    same(await again.locator(".panel").nth(0).getByRole("button", { name: "Stacked" }).getAttribute("aria-pressed"), "true", "stacked");
    same(await again.locator(".panel").nth(1).locator("[aria-selected=true]").innerText(), "Table", "the tab");
    same(again.url(), address, "the address");
    await again.locator(".panel").nth(0).getByRole("button", { name: "Hide this query" }).click();
    expect(again.url().includes("g0.hide=1"), "hidden is not in the link");
    await again.locator(".panel").nth(0).getByRole("button", { name: "Remove this query" }).click();
    same(await again.locator(".panel").count(), 1, "panels after removing one");
    await close(again);
  },

  async "links of Prometheus are understood"() {
    const page = await open("/graph?g0.expr=demo_requests_total&g0.tab=1&g0.display_mode=lines&g0.show_exemplars=0&g0.range_input=2d&g0.end_input=2026-01-02%2003%3A04%3A05&g0.moment_input=2026-01-02%2003%3A04%3A05");
    same(await rangeLabel(page), "2025-12-31 03:04 – 2026-01-02 03:04", "range and end");
    same(await page.locator("[aria-selected=true]").innerText(), "Table", "tab 1");
    await close(page);
    const newer = await open("/graph?g0.expr=up&g0.tab=graph&g0.range_input=30m");
    same(await rangeLabel(newer), "Last 30 minutes", "the newer form");
    await close(newer);
  },

  async "errors mark the column; warnings and infos are shown"() {
    const page = await open(query("sum(demo_requests_total) +\n  rate(demo_temperature_celsius)"), { refused: true });
    const failure = page.locator(".failure");
    await failure.waitFor();
    expect((await failure.innerText()).includes("expected type range vector"), await failure.innerText());
    same(await failure.locator("mark").innerText(), "demo_temperature_celsius", "the mark");
    await page.locator(".cm-server-error").waitFor();
    await page.screenshot({ path: join(shots, "error.png") });
    await close(page);
    const info = await open(query("rate(demo_temperature_celsius[5m])"));
    await info.locator(".note.info", { hasText: "might not be a counter" }).waitFor();
    await close(info);
  },

  async "history, format, stats"() {
    const page = await open("/");
    await page.locator(".editor .cm-content").click();
    await page.keyboard.insertText("sum(demo_requests_total)by(code)");
    await page.keyboard.press("Enter");
    await drawn(page);
    const stats = await page.locator(".stats").innerText();
    expect(/3 series/.test(stats) && /samples/.test(stats) && /step/.test(stats), `stats: ${stats}`);
    await page.getByRole("button", { name: "Format the expression" }).click();
    await page.waitForFunction(() => document.querySelector(".editor").shadowRoot.textContent.includes("sum by (code)"));
    await page.reload();
    await page.goto(base + "/");
    await page.getByRole("button", { name: "Query history" }).click();
    await page.getByLabel("Search the history").fill("by(code)");
    await page.locator(".menu-item").first().click();
    same(await editorText(page), "sum(demo_requests_total)by(code)", "out of the history");
    await drawn(page);
    await close(page);
  },

  async "hostile names, labels and help texts stay text"() {
    for (const tab of [0, 1, 2]) {
      const page = await open(query('{__name__=~".*hostile.*"}', tab));
      await page.locator(tab === 2 ? ".explain" : tab === 1 ? ".table tbody tr" : ".legend-table tbody tr").first().waitFor();
      if (tab < 2) expect((await page.locator("main").innerText()).includes("<img src=x onerror="), "the label is not shown as it is");
      same(await page.locator("main img, main script, main iframe").count(), 0, "elements out of labels");
      if (tab === 0) await page.locator(".u-over").hover({ position: { x: 600, y: 100 } });
      if (tab === 0) await page.screenshot({ path: join(shots, "hostile.png") });
      await close(page);
    }
    const page = await open(`/?view=explore&metric=hostile&with=${encodeURIComponent('evil=<img src=x onerror="window.pwned=1">')}`);
    await page.locator(".plain-list li").first().waitFor();
    await page.getByText("<script>window.pwned=2</script>").first().waitFor();
    same(await page.locator("main img, main script").count(), 0, "elements out of labels");
    await close(page);
  },

  async "explain is a tree with figures"() {
    const page = await open(query("sum by (code) (rate(demo_requests_total[5m])) / 2", 2));
    const items = page.locator("[role=treeitem]");
    await items.first().waitFor();
    expect((await items.count()) >= 4, `${await items.count()} operators`);
    const kinds = await page.locator(".explain .kind").allInnerTexts();
    expect(kinds.includes("aggregate") && kinds.includes("rollup"), kinds.join());
    await items.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowLeft");
    same(await items.nth(1).getAttribute("aria-expanded"), "false", "closed by a key");
    await page.keyboard.press("ArrowRight");
    same(await items.nth(1).getAttribute("aria-expanded"), "true", "opened by a key");
    await page.screenshot({ path: join(shots, "explain.png") });
    await close(page);
  },

  async "the explorer counts, and leads to a query"() {
    const page = await open("/?view=explore");
    await page.locator(".bar", { hasText: "demo_requests_total" }).first().waitFor();
    const row = await page.locator("section", { hasText: "Metrics with most series" }).locator(".bar", { hasText: "demo_requests_total" }).innerText();
    expect(/12$/.test(row.trim()), row);
    await page.getByLabel("Find a metric").fill("demo req");
    same(await page.locator(".names .name").count(), 1, "names found");
    await page.locator(".names .name").click();
    const code = page.locator("section[aria-label=code]");
    await code.locator(".bar").first().waitFor();
    same((await code.locator(".bar").allInnerTexts()).map((text) => text.replace(/\s+/g, " ")).sort().join("; "), "200 4; 404 4; 500 4", "values of code");
    await code.locator(".bar", { hasText: "500" }).click();
    await page.locator(".crumbs", { hasText: 'code="500"' }).waitFor();
    same(await page.locator(".figure", { hasText: "series" }).first().locator("b").innerText(), "4", "series below");
    await page.getByRole("button", { name: "Query", exact: true }).click();
    await page.locator(".editor").waitFor();
    same(await editorText(page), 'rate(demo_requests_total{code="500"}[5m])', "the query");
    await close(page);
  },

  async "what is never queried is listed"() {
    await askOnce();
    const page = await open("/?view=explore");
    await page.locator('section[aria-label="Never queried"] .name', { hasText: "demo_unasked" }).waitFor();
    same(await page.locator('section[aria-label="Never queried"] .name', { hasText: /^demo_requests_total$/ }).count(), 0, "a metric that was queried");
    await close(page);
  },

  async "running queries can be canceled"() {
    const page = await open("/?view=activity");
    const slow = page.evaluate(async () => {
      const query = "quantile_over_time(0.5, vector((time() * 7919) % 100003)[200h:1s])"; // some ten seconds
      const end = Math.floor(Date.now() / 1000);
      const answer = await fetch("api/v1/query_range", { method: "POST", body: new URLSearchParams({ query, start: end - 60, end, step: 1 }) });
      return answer.status;
    });
    page.sins = { push: (...sins) => sins.every((sin) => REFUSED.test(sin)) || sinned.push(...sins) };
    const sinned = [];
    const row = page.locator("tr", { hasText: "quantile_over_time" });
    await row.waitFor({ timeout: 8000 });
    await page.screenshot({ path: join(shots, "running.png") });
    await row.getByRole("button").click();
    const status = await Promise.race([slow, new Promise((done) => setTimeout(() => done("none"), 8000))]);
    expect([422, 499, 503].includes(status), `the canceled query's status is ${status}`);
    await row.waitFor({ state: "detached" });
    page.sins = sinned;
    await close(page);
  },

  async "queries that cost most are listed"() {
    await askOnce();
    const page = await open("/?view=activity");
    await page.locator(".bars .bar", { hasText: "demo_requests_total" }).first().waitFor();
    await page.getByRole("button", { name: "Most often" }).click();
    same(await page.getByRole("button", { name: "Most often" }).getAttribute("aria-pressed"), "true", "the order");
    await page.locator(".bars .bar").first().click();
    await page.locator(".editor").first().waitFor();
    await close(page);
  },

  async "the storage is drawn along time"() {
    const page = await open("/?view=storage");
    await page.locator(".core-part").first().waitFor();
    const parts = await page.locator(".core-part").count();
    const told = await page.evaluate(async () => (await (await fetch("api/v1/status/storage")).json()).data.partitions.flatMap((each) => each.parts).length);
    same(parts, told, "parts drawn");
    expect(parts >= 2, "two months lie in two parts at least");
    await page.locator(".core-part").first().focus();
    expect(/samples/.test(await page.locator(".core-detail").innerText()), "nothing is told of the part");
    await page.locator(".partition summary").first().click();
    await page.locator(".partition tbody tr").first().waitFor();
    await close(page);
  },

  async "keys alone are enough"() {
    const page = await open("/");
    await page.keyboard.type("demo_temp");
    await accept(page, "demo_temperature_celsius");
    await page.keyboard.press("Enter");
    await drawn(page);
    let reached = false;
    for (let i = 0; i < 40 && !reached; i++) {
      await page.keyboard.press("Tab");
      const seen = await page.evaluate(() => {
        const at = document.activeElement;
        const style = getComputedStyle(at);
        return { what: at.className || at.tagName, chart: at.classList.contains("chart"), visible: style.outlineStyle !== "none" || at.classList.contains("editor") || at === document.body };
      });
      expect(seen.visible, `the focus is not visible on ${seen.what}`);
      reached = seen.chart;
    }
    expect(reached, "the graph can't be reached by Tab");
    await page.keyboard.press("End");
    await page.locator(".readout").waitFor();
    const before = await rangeLabel(page);
    await page.keyboard.press("Shift+ArrowLeft");
    expect((await rangeLabel(page)) !== before, "shift and arrow do not move the range");
    await page.keyboard.press("?");
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.locator(".name").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("demo_temp");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".crumbs", { hasText: "demo_temperature_celsius" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.locator(".storage").waitFor();
    await close(page);
  },

  async "every control has a name"() {
    const page = await open("/");
    for (const path of [query("demo_requests_total"), "/?view=explore", "/?view=activity", "/?view=storage"]) {
      await visit(page, path);
      const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, a, [tabindex='0']")].filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length)).map((each) => each.outerHTML.slice(0, 120)));
      same(nameless.join("; "), "", "nameless");
    }
    await close(page);
  },

  async "dark and light"() {
    const page = await open(query("demo_requests_total"), { colorScheme: "dark", locale: "de" });
    await drawn(page);
    const lightness = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, each) => sum + Number(each), 0));
    expect((await lightness()) < 150, "not dark though the system is");
    await page.locator(".theme").click();
    expect((await lightness()) > 600, "not light though it was chosen");
    await page.reload();
    await drawn(page);
    expect((await lightness()) > 600, "the choice is forgotten");
    await page.locator(".theme").click();
    expect((await lightness()) < 150, "not dark though it was chosen");
    await close(page);
  },

  async "small screens do not scroll sideways"() {
    const page = await open("/", { viewport: PHONE });
    for (const path of [query("demo_requests_total"), query("demo_requests_total", 1), query("sum(demo_requests_total)", 2), "/?view=explore", "/?view=explore&metric=demo_requests_total", "/?view=activity", "/?view=storage"]) {
      await visit(page, path);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(over <= 0, `${path} is ${over} pixels too wide`);
    }
    await close(page);
  },

  async "what the server lacks is said kindly"() {
    for (const view of ["explore", "activity", "storage"]) {
      const page = await open("/", { refused: true });
      await page.route("**/api/v1/status/**", (route) => route.fulfill({ status: 404, contentType: "application/json", body: '{"status":"error","errorType":"not_found","error":"no such path"}' }));
      await page.locator(".nav-link").nth({ explore: 1, activity: 2, storage: 3 }[view]).click();
      await page.locator(".nothing").first().waitFor();
      await page.screenshot({ path: join(shots, `lacking-${view}.png`) });
      await close(page);
    }
  },

  async "screenshots of every view"() {
    const views = { empty: "/", graph: query("sum by (code) (rate(demo_requests_total[5m]))"), table: query("demo_requests_total", 1), explain: query("sum by (code) (rate(demo_requests_total[5m])) / 2", 2), metrics: "/?view=explore", metric: "/?view=explore&metric=demo_requests_total", activity: "/?view=activity", storage: "/?view=storage" };
    for (const [size, viewport] of Object.entries({ desk: DESK, phone: PHONE })) {
      for (const colorScheme of ["light", "dark"]) {
        const page = await open("/", { viewport, colorScheme });
        for (const [name, path] of Object.entries(views)) {
          await visit(page, path);
          await page.screenshot({ path: join(shots, `${name}-${size}-${colorScheme}.png`) });
        }
        await close(page);
      }
    }
  },
};

const only = process.argv[2];
for (const [name, check] of Object.entries(checks)) {
  if (only && !name.includes(only)) continue;
  const start = Date.now();
  try {
    await check();
    console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    console.log(`not ok ${name}: ${error.message.split("\n").slice(0, 6).join(" | ")}`);
  }
}
await browser.close();
