// Chapter 5: timers. They live here and not in the host, so that an image of the VM
// holds them: the host asks when the next one is due and says when to run it.
//
// The queue is a pairing heap of linked nodes, first by due time, then by creation. It
// needs no array, and a hundred thousand timers are no burden.

const maxDelay = 2 ** 31 - 1; // what browsers and Node.js can wait for, 24.8 days

const timers = safeMap(); // id → node, the ones that can still run
let earliest = null;
let lastTimer = 0; // id
let lastSequence = 0; // order of creation; an interval gets a new one each time
let cancelled = 0; // nodes still in the heap

const meld = (a, b) => {
	if (a === null) return b;
	if (b === null) return a;
	if (b.due < a.due || (b.due === a.due && b.sequence < a.sequence)) {
		const c = a;
		a = b;
		b = c;
	}
	b.next = a.child;
	a.child = b;
	return a;
};

const takeEarliest = () => {
	const top = earliest;
	let pairs = null;
	for (let n = top.child; n !== null; ) {
		const a = n;
		const b = a.next;
		n = b === null ? null : b.next;
		a.next = null;
		if (b !== null) b.next = null;
		const m = meld(a, b);
		m.next = pairs;
		pairs = m;
	}
	earliest = null;
	while (pairs !== null) {
		const m = pairs;
		pairs = m.next;
		m.next = null;
		earliest = meld(earliest, m);
	}
	top.child = null;
	return top;
};

const enqueue = (node, due) => {
	node.due = due;
	node.sequence = ++lastSequence;
	node.child = node.next = null;
	earliest = meld(earliest, node);
};

// skipCancelled leaves a live timer at the top, or none.
const skipCancelled = () => {
	while (earliest !== null && earliest.callback === null) {
		takeEarliest();
		cancelled--;
	}
};

const startTimer = (name, callback, delay, args, repeats) => {
	if (typeof callback !== "function") {
		throw fault(OriginalTypeError, name + ": the callback must be a function, not " + (callback === null ? "null" : typeof callback));
	}
	let wait = toNumber(delay); // may throw, as in browsers
	// As in browsers: what is no number of milliseconds is 0. An interval of 0 would never
	// let go of the processor.
	wait = finite(wait) ? min(max(floor(wait), repeats ? 1 : 0), maxDelay) : repeats ? 1 : 0;
	const node = { __proto__: null, id: ++lastTimer, callback, args, every: repeats ? wait : -1, due: 0, sequence: 0, child: null, next: null };
	timers.set(node.id, node);
	board[2]++;
	enqueue(node, host.now() + wait);
	return node.id;
};

const stopTimer = (id) => {
	// As in browsers the id may be anything; objects are not converted, so that nothing runs.
	if (typeof id === "string") id = toNumber(id);
	const node = timers.get(id);
	if (node === undefined) return;
	timers.delete(id);
	board[2]--;
	node.callback = node.args = null;
	if (++cancelled > 1000 && cancelled > 2 * timers.size) {
		// A cell that starts and stops long timers in a loop must not fill its heap.
		earliest = null;
		cancelled = 0;
		timers.forEach((live) => {
			live.child = live.next = null;
			earliest = meld(earliest, live);
		});
	}
};

expose("setTimeout", { setTimeout(callback, delay = 0, ...args) { return startTimer("setTimeout", callback, delay, args, false); } }.setTimeout);
expose("setInterval", { setInterval(callback, delay = 0, ...args) { return startTimer("setInterval", callback, delay, args, true); } }.setInterval);
expose("clearTimeout", { clearTimeout(id) { stopTimer(id); } }.clearTimeout);
expose("clearInterval", { clearInterval(id) { stopTimer(id); } }.clearInterval);

// nextTimer is when the next timer is due, or -1.
const nextTimer = () => {
	skipCancelled();
	return earliest === null ? -1 : earliest.due;
};

// fire runs the earliest timer that is due at now and no younger than limit, and tells
// whether there was one. The limit keeps a timer of delay 0 that starts the next such
// from holding the host for ever.
const fire = (now, limit) => {
	skipCancelled();
	const node = earliest;
	if (node === null || node.due > now || node.sequence > limit) return false;
	takeEarliest();
	const { callback, args } = node;
	if (node.every < 0) {
		timers.delete(node.id);
		board[2]--;
	} else {
		enqueue(node, max(node.due + node.every, now));
	}
	try {
		apply(callback, undefined, args);
	} catch (e) {
		uncaught(e);
	}
	return true;
};
