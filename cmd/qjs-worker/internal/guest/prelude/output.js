// Chapter 4: text, json and console (SPEC 9.1). One order for all of them: each reports
// its item to the host before it returns.

const emitText = (s) => host.output("text", jsonStringify(s));

expose("text", { text(value) { emitText(textOf(value)); } }.text);
expose("json", { json(value) { host.output("json", encode(value)); } }.json);

// show renders one argument of a console method.
const show = (v) => {
	switch (typeof v) {
		case "string":
			return v;
		case "number":
			return sameValue(v, -0) ? "-0" : toString(v);
		case "bigint":
			return toString(v) + "n";
		case "undefined":
		case "boolean":
			return toString(v);
		case "symbol":
		case "function":
			return jsonParse(encode(v));
	}
	if (v === null) return "null";
	if (isError(v)) return showError(v);
	const json = encode(v);
	// A text such as "[Promise: not awaited]" stands for the value; no quotes around it.
	return json[0] === '"' ? jsonParse(json) : json;
};

// showError gives "Name: message" and the error's own fields. No stack: its lines are those
// of the program we made of the cell, and only the host can turn them into the cell's.
const showError = (e) => {
	const json = encode(e);
	if (json[0] !== "{") return json[0] === '"' ? jsonParse(json) : json; // its toJSON
	const fields = jsonParse(json);
	const name = hasOwn(fields, "name") ? fields.name : "Error";
	const message = hasOwn(fields, "message") ? fields.message : "";
	delete fields.name;
	delete fields.message;
	const head = (typeof name === "string" ? name : "Error") + (message === "" ? "" : ": " + (typeof message === "string" ? message : encode(message)));
	return objectKeys(fields).length === 0 ? head : head + " " + encode(fields);
};

// format joins arguments as consoles do: %s %d %i %f %o %O %j %c in a leading string,
// everything left over joined by a space.
const format = (args) => {
	let next = 0;
	let out = "";
	if (args.length > 1 && typeof args[0] === "string" && indexOf(args[0], "%") >= 0) {
		const pattern = args[0];
		next = 1;
		let at = 0;
		for (;;) {
			const percent = indexOf(pattern, "%", at);
			if (percent < 0 || percent === pattern.length - 1) break;
			const verb = pattern[percent + 1];
			let put;
			if (verb === "%") put = "%";
			else if (next < args.length) put = directive(verb, args[next]);
			if (put === undefined) {
				out += stringSlice(pattern, at, percent + 1);
				at = percent + 1;
				continue;
			}
			if (verb !== "%") next++;
			out += stringSlice(pattern, at, percent) + put;
			at = percent + 2;
		}
		out += stringSlice(pattern, at);
		if (next < args.length) out += " ";
	}
	for (let i = next; i < args.length; i++) out += (i > next ? " " : "") + show(args[i]);
	return out;
};

const directive = (verb, v) => {
	switch (verb) {
		case "s":
			return show(v);
		case "d":
		case "i":
		case "f": {
			if (typeof v === "bigint") return show(v);
			const n = typeof v === "number" ? v : typeof v === "string" || typeof v === "boolean" ? toNumber(v) : NaN;
			return show(verb === "i" ? trunc(n) : n);
		}
		case "o":
		case "O":
		case "j":
			return typeof v === "string" ? jsonStringify(v) : show(v);
		case "c":
			return ""; // CSS
	}
	return undefined;
};

let indent = ""; // of console.group
const counts = safeMap();
const stopwatches = safeMap();

const write = (level, s) => {
	if (indent !== "") {
		let indented = "";
		for (let at = 0; ; ) {
			const end = indexOf(s, "\n", at);
			if (end < 0) {
				indented += indent + stringSlice(s, at);
				break;
			}
			indented += indent + stringSlice(s, at, end + 1);
			at = end + 1;
		}
		s = indented;
	}
	emitText(level === "log" ? s : "[" + level + "] " + s);
};

const nameOf = (v) => (v === undefined ? "default" : show(v));

const elapsed = (name) => {
	const since = stopwatches.get(name);
	return since === undefined ? undefined : name + ": " + toFixed(host.now() - since, 3) + " ms";
};

// table draws rows as text columns. What is no object is logged as it is.
const maxTableRows = 1000;
const table = (data) => {
	if (data === null || typeof data !== "object") return show(data);
	const json = encode(data);
	if (json[0] !== "{" && json[0] !== "[") return show(data);
	const rows = jsonParse(json); // plain data: no getters and no surprises below
	const index = objectKeys(rows);
	const columns = safeMap(); // name → width
	let firstWidth = 7;
	let valueWidth = 0; // of the column for rows that are no objects
	const cell = (v) => (typeof v === "string" ? v : jsonStringify(v));
	const count = min(index.length, maxTableRows);
	for (let i = 0; i < count; i++) {
		firstWidth = max(firstWidth, index[i].length);
		const row = rows[index[i]];
		if (row === null || typeof row !== "object") {
			valueWidth = max(valueWidth, 6, cell(row).length);
			continue;
		}
		const names = objectKeys(row);
		for (let j = 0; j < names.length; j++) {
			const width = max(names[j].length, cell(row[names[j]]).length);
			columns.set(names[j], max(width, columns.get(names[j]) ?? 0));
		}
	}
	let out = padEnd("(index)", firstWidth);
	columns.forEach((width, name) => {
		out += " | " + padEnd(name, width);
	});
	if (valueWidth > 0) out += " | " + padEnd("Values", valueWidth);
	for (let i = 0; i < count; i++) {
		const row = rows[index[i]];
		const plain = row === null || typeof row !== "object";
		let line = padEnd(index[i], firstWidth);
		columns.forEach((width, name) => {
			line += " | " + padEnd(!plain && hasOwn(row, name) ? cell(row[name]) : "", width);
		});
		if (valueWidth > 0) line += " | " + padEnd(plain ? cell(row) : "", valueWidth);
		out += "\n" + line;
	}
	if (index.length > count) out += "\n… " + (index.length - count) + " more rows";
	return out;
};

expose("console", {
	log(...args) { write("log", format(args)); },
	info(...args) { write("info", format(args)); },
	warn(...args) { write("warn", format(args)); },
	error(...args) { write("error", format(args)); },
	debug(...args) { write("debug", format(args)); },
	trace(...args) { write("trace", format(args)); },
	dir(value) { write("log", show(value)); },
	dirxml(...args) { write("log", format(args)); },
	table(data) { write("log", table(data)); },
	assert(condition, ...args) {
		if (!condition) write("error", args.length === 0 ? "Assertion failed" : "Assertion failed: " + format(args));
	},
	count(name) {
		name = nameOf(name);
		const n = (counts.get(name) ?? 0) + 1;
		counts.set(name, n);
		write("log", name + ": " + n);
	},
	countReset(name) { counts.delete(nameOf(name)); },
	group(...args) {
		if (args.length > 0) write("log", format(args));
		if (indent.length < 64) indent += "  ";
	},
	groupCollapsed(...args) {
		if (args.length > 0) write("log", format(args));
		if (indent.length < 64) indent += "  ";
	},
	groupEnd() { indent = stringSlice(indent, 2); },
	time(name) { stopwatches.set(nameOf(name), host.now()); },
	timeLog(name, ...args) {
		const line = elapsed(nameOf(name));
		if (line !== undefined) write("log", args.length === 0 ? line : line + " " + format(args));
	},
	timeEnd(name) {
		name = nameOf(name);
		const line = elapsed(name);
		stopwatches.delete(name);
		if (line !== undefined) write("log", line);
	},
});
