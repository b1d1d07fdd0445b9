// The server's API: one way to ask, one kind of error, the shapes of the answers.
import type { Labels } from "./format";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message);
  }

  // The server does not know the call: it is older than the page, or another program.
  get missing(): boolean {
    return this.status === 404;
  }
}

export interface Envelope<T> {
  data: T;
  warnings?: string[];
  infos?: string[];
  bytes: number;
  elapsed: number; // ms, as seen from here
}

export type Params = Record<string, string | number | string[] | undefined>;

function encode(params: Params): URLSearchParams {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) out.append(name, String(each));
  }
  return out;
}

async function read(response: Response): Promise<{ body: Record<string, unknown>; bytes: number }> {
  const text = await response.text();
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new ApiError(response.status, "bad_answer", response.ok ? "the server's answer is no JSON" : `the server answers ${response.status}`);
  }
  if (!response.ok || body["status"] === "error") throw new ApiError(response.status, String(body["errorType"] ?? ""), String(body["error"] ?? `the server answers ${response.status}`));
  return { body, bytes: text.length };
}

async function ask(path: string, init: RequestInit): Promise<Envelope<unknown> & { body: Record<string, unknown> }> {
  const start = performance.now();
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "the server does not answer; is it running?");
  }
  const { body, bytes } = await read(response);
  const out = { data: body["data"], body, bytes, elapsed: performance.now() - start };
  return Object.assign(out, body["warnings"] ? { warnings: body["warnings"] as string[] } : {}, body["infos"] ? { infos: body["infos"] as string[] } : {});
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<Envelope<T>> {
  const query = encode(params).toString();
  return (await ask(query ? `${path}?${query}` : path, signal ? { signal } : {})) as Envelope<T>;
}

// Whole body instead of its data member: VictoriaMetrics' shapes have none.
export async function getBody<T>(path: string, params: Params = {}): Promise<T> {
  const query = encode(params).toString();
  return (await ask(query ? `${path}?${query}` : path, {})).body as T;
}

export async function post<T>(path: string, params: Params, signal?: AbortSignal): Promise<Envelope<T>> {
  const init: RequestInit = { method: "POST", body: encode(params) };
  if (signal) init.signal = signal;
  return (await ask(path, init)) as Envelope<T>;
}

// ---- queries

export interface Histogram {
  count: string;
  sum: string;
  buckets?: [number, string, string, string][];
}

export interface Series {
  metric: Labels;
  value?: [number, string];
  values?: [number, string][];
  histogram?: [number, Histogram];
  histograms?: [number, Histogram][];
}

export interface Stats {
  timings?: { execTotalTime?: number; evalTotalTime?: number };
  samples?: { totalQueryableSamples?: number; peakSamples?: number };
}

export interface ExplainNode {
  node: string;
  text: string;
  steps: number;
  rows?: number;
  seconds?: number;
  series?: number;
  from?: number | string;
  to?: number | string;
  children?: ExplainNode[];
}

export type QueryData = { stats?: Stats; explain?: ExplainNode } & (
  | { resultType: "vector" | "matrix"; result: Series[] }
  | { resultType: "scalar" | "string"; result: [number, string] }
);

// ---- status

export interface Named {
  name: string;
  value: number;
}

export interface TsdbStatus {
  headStats?: { numSeries: number; numLabelPairs: number; chunkCount: number; minTime: number; maxTime: number };
  seriesCountByMetricName: Named[];
  labelValueCountByLabelName: Named[];
  memoryInBytesByLabelName?: Named[];
  seriesCountByLabelValuePair: Named[];
  seriesCountByFocusLabelValue?: Named[];
  seriesCreatedLastHourByMetricName?: Named[];
  totalSeries?: number;
  seriesCreatedSince?: number;
}

export interface NameStats {
  statsCollectedSince: number;
  records: { metricName: string; requestsCount: number; lastRequestTimestamp: number }[];
}

export interface ActiveQuery {
  duration: string;
  id: string;
  remote_addr: string;
  query: string;
  start: number;
  end: number;
  step: number;
}

export interface TopQuery {
  query: string;
  timeRangeSeconds: number;
  count: number;
  avgDurationSeconds?: number;
  sumDurationSeconds?: number;
}

export interface TopQueries {
  maxLifetime: string;
  topByCount: TopQuery[];
  topByAvgDuration: TopQuery[];
  topBySumDuration: TopQuery[];
}

export interface Part {
  name: string;
  level: number;
  series: number;
  samples: number;
  bytes: number;
  minTime: number;
  maxTime: number;
}

export interface Partition {
  name: string;
  minTime: number;
  maxTime: number;
  parts: Part[];
}

export interface StorageStatus {
  path: string;
  retentionMs: number;
  disk: { usedBytes: number; freeBytes: number };
  wal: { segments: number; bytes: number };
  head: { series: number; samples: number; bytes: number; minTime: number; maxTime: number };
  merges: { running: number; waiting: number; total: number };
  partitions: Partition[];
}

// ---- metadata: asked for once in a while, shared by hover and explorer

export interface Metadata {
  type: string;
  help: string;
  unit?: string;
}

let metadata: Promise<Record<string, Metadata[]>> | null = null;
let metadataAt = 0;

export async function metadataOf(metric: string): Promise<Metadata | null> {
  if (!metadata || Date.now() - metadataAt > 60e3) {
    metadataAt = Date.now();
    metadata = get<Record<string, Metadata[]>>("api/v1/metadata").then((answer) => answer.data, () => ({}));
  }
  const all = await metadata;
  const found = all[metric] ?? all[metric.replace(/_(bucket|count|sum|total)$/, "")];
  return found?.[0] ?? null;
}
