// What one cell costs in Node's worker_threads with quickjs-wasi; see README.md.
//
//   node bench.mjs [--runs N] [--only NAME]     one JSON line a benchmark, on stdout
//   node bench.mjs --sample NAME                one sample, in this process (used by the first form)
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { Worker } from "node:worker_threads";

const cells = {
  cold: { source: "1+2", json: "3", runs: 100 },
  fib25: {
    source: "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\nfib(25)",
    json: "75025",
    runs: 20,
  },
  loop3e6: {
    source: "let sum = 0; for (let i = 0; i < 3e6; i++) sum += i; sum",
    json: "4499998500000",
    runs: 20,
  },
};

const limits = { memoryLimitBytes: 64 * 1024 * 1024, timeoutMs: 10_000 }; // the supervisor's defaults
const warmUps = 3; // samples thrown away in the long-lived process, for Node's own JIT

const { values: options } = parseArgs({
  options: { runs: { type: "string" }, only: { type: "string" }, sample: { type: "string" } },
});

async function compile() {
  const wasm = new URL("./node_modules/quickjs-wasi/quickjs.wasm", import.meta.url);
  return WebAssembly.compile(await readFile(wasm));
}

// exec is one cell, from the request to its value. Ending the thread is waited
// for, so that runs do not overlap, but its time is nobody's.
async function exec(module, cell) {
  const start = performance.now();
  const worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    workerData: { module, source: cell.source, ...limits },
    env: {},
  });
  const message = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`worker exited with ${code} and no result`)));
  });
  const value = message.json === undefined ? undefined : JSON.parse(message.json);
  const wholeMs = performance.now() - start;
  await worker.terminate();
  if (JSON.stringify(value) !== cell.json) {
    throw new Error(`${cell.source}: got ${JSON.stringify(message)}, want ${cell.json}`);
  }
  return { wholeMs, guestMs: message.guestMs };
}

// longLived: one gateway process, one compiled module for all its workers. V8
// shares the module's machine code among them, so it gets faster with use.
async function longLived(cell, runs) {
  const module = await compile();
  for (let i = 0; i < warmUps; i++) await exec(module, cell);
  const samples = [];
  for (let i = 0; i < runs; i++) samples.push(await exec(module, cell));
  return samples;
}

// firstCell: a new gateway process a sample, so that no function of the engine
// has been compiled yet. The process's start and the module's compilation are not in the figure.
async function firstCell(name, runs) {
  const samples = [];
  for (let i = 0; i < runs; i++) {
    const self = fileURLToPath(import.meta.url);
    const { stdout } = await promisify(execFile)(process.execPath, [self, "--sample", name]);
    samples.push(JSON.parse(stdout));
  }
  return samples;
}

// Nearest rank: with fewer than 100 samples, p99 is the slowest one.
function rank(numbers, q) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = Math.max(0, Math.ceil(q * sorted.length) - 1);
  return Number(sorted[at].toFixed(2));
}

function summary(samples, field) {
  const numbers = samples.map((sample) => sample[field]);
  return { median: rank(numbers, 0.5), p99: rank(numbers, 0.99) };
}

function report(bench, process, samples) {
  console.log(JSON.stringify({
    bench,
    process,
    runs: samples.length,
    whole_ms: summary(samples, "wholeMs"),
    guest_ms: summary(samples, "guestMs"),
  }));
}

const wanted = options.sample ?? options.only;
if (wanted !== undefined && !Object.hasOwn(cells, wanted)) {
  console.error(`bench.mjs: no benchmark is called ${wanted}; there are ${Object.keys(cells).join(", ")}`);
  process.exit(2);
}
const runsAsked = options.runs === undefined ? undefined : Number(options.runs);
if (runsAsked !== undefined && !(Number.isInteger(runsAsked) && runsAsked > 0)) {
  console.error(`bench.mjs: --runs wants a whole number above 0, got ${options.runs}`);
  process.exit(2);
}

if (options.sample !== undefined) {
  console.log(JSON.stringify(await exec(await compile(), cells[options.sample])));
} else {
  for (const [name, cell] of Object.entries(cells)) {
    if (options.only !== undefined && options.only !== name) continue;
    const runs = runsAsked ?? cell.runs;
    report(name, "long-lived", await longLived(cell, runs));
    report(name, "first-cell", await firstCell(name, Math.min(runs, 20)));
  }
}
