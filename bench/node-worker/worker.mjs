// One cell in a thread of its own: make a VM, evaluate, send one message back.
// The main thread terminates the thread after that message; nothing is reused.
import { parentPort, workerData } from "node:worker_threads";
import { EvalFlags, QuickJS } from "quickjs-wasi";

const { module, source, memoryLimitBytes, timeoutMs } = workerData;
const deadline = performance.now() + timeoutMs;

const vm = await QuickJS.create({
  wasm: module,
  memoryLimit: memoryLimitBytes,
  interruptHandler: () => performance.now() > deadline,
  timezoneOffset: 0,
});

// An async block, as in the supervisor: its completion value is the result.
const start = performance.now();
const promise = vm.evalCode(`{\n${source}\n}`, "cell.js", EvalFlags.ASYNC);
vm.executePendingJobs();
const settled = await vm.resolvePromise(promise);
const guestMs = performance.now() - start;

if ("error" in settled) {
  parentPort.postMessage({ error: settled.error.consume((h) => h.toString()) });
} else {
  // The guest makes the JSON itself, so that one string crosses, not a handle a property.
  vm.setProp(vm.global, "__settled", settled.value);
  const json = vm.evalCode("JSON.stringify(__settled.value)").consume((h) => h.toString());
  parentPort.postMessage({ json, guestMs });
}
