// Chapter 14: yield_control, by which a cell lets go of its turn (SPEC 12.1). What a
// yield waits for is the next resume and nothing else, so the host holds no ids: all that
// are open then are settled, in the order they were made.

const maxNoteUnits = 4096; // more than any host shows
const yields = safeMap(); // number → resolve
let lastYield = 0;

// noteOf is what a yield says: "" if there is nothing that can be said.
const noteOf = (reason) => {
	let note = "";
	try {
		if (typeof reason === "object" || typeof reason === "function") note = reason === null ? "null" : textOf(reason);
		else if (reason !== undefined) note = toString(reason);
	} catch {
		// A getter or a toJSON threw. A yield is no place to fail.
	}
	return toWellFormed(stringSlice(note, 0, maxNoteUnits));
};

expose("yield_control", {
	yield_control(reason) {
		const note = noteOf(reason);
		let resolve;
		const promise = new OriginalPromise((a) => {
			resolve = a;
		});
		yields.set(++lastYield, resolve);
		board[1]++;
		board[3]++;
		host.yield(note);
		return promise;
	},
}.yield_control);

// resume settles every yield that is open. Nothing of the guest's runs before it returns.
const resume = () => {
	board[1] -= yields.size;
	board[3] = 0;
	yields.forEach((resolve) => resolve(undefined));
	yields.clear();
};
