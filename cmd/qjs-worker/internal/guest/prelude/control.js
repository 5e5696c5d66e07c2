// Last chapter: the run itself, and what the host holds. Everything that a run is waiting
// for (its promise, calls, yields, timers, rejections) is reachable from here, inside the VM,
// so that an image of it is the whole run.

let result = ""; // JSON text of the value, or of the failure
let reason; // what it failed with

const complete = (value) => {
	if (board[0] !== 0) return;
	let text;
	try {
		text = encode(value);
	} catch (e) {
		fail(e); // thrown by a getter or a toJSON of the guest's
		return;
	}
	// A getter may have failed the run meanwhile, in a way that nobody catches.
	if (board[0] !== 0) return;
	board[0] = 1;
	result = text;
};

const fail = (e) => {
	if (board[0] === 2) return;
	board[0] = 2;
	reason = e;
	result = failure(e);
	host.failed(); // to look at the reason: it may be a stop of the engine's
};

// uncaught records what a timer or a microtask threw: the run fails with the first one,
// even if its own promise was fulfilled before.
const uncaught = fail;

// run starts the cell: an async function without parameters.
const run = (cell) => {
	let promise;
	try {
		promise = cell();
	} catch (e) {
		fail(e);
		return;
	}
	// then asks promise.constructor which class its result has; the guest can patch that on
	// the prototype.
	define(promise, "constructor", undefined);
	promiseThen(promise, complete, fail);
};

// Rejections that nobody handled so far, in the order they came. A Map, so that a storm
// of them costs one entry each and a late handler takes its own out again.
const unhandled = safeMap();

const rejected = (promise, why, handled) => {
	if (handled) unhandled.delete(promise);
	else unhandled.set(promise, why);
};

const firstUnhandled = () => {
	if (unhandled.size === 0) return "";
	reason = mapIteratorNext(unhandled.values()).value;
	return failure(reason);
};

return {
	__proto__: null,
	setup,
	namespaces,
	run,
	settle,
	refuse,
	resume,
	nextTimer,
	sequence: () => lastSequence,
	fire,
	uncaught,
	rejected,
	firstUnhandled,
	board,
	result: () => result,
	reason: () => reason,
};
