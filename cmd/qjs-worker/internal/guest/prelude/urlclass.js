// Chapter 13: the classes URL and URLSearchParams, over the records of the last chapter.

const formDecode = (s) => percentDecodeText(join(split(s, "+"), " "));
const formEncode = (s) => join(split(percentEncodeSet(join(split(s, " "), "\0"), formSet), "%00"), "+");

// usv converts an argument to a string without lone surrogates.
const usv = (v) => toWellFormed(toString(v));

const need = (args, n, what) => {
	if (args < n) throw fault(OriginalTypeError, what + ": " + n + (n === 1 ? " argument is" : " arguments are") + " needed, got " + args);
};

const parsePairs = (s) => {
	const list = bareArray();
	const parts = split(s, "&");
	for (let i = 0; i < parts.length; i++) {
		const part = parts[i];
		if (part === "") continue;
		const equals = indexOf(part, "=");
		const name = equals < 0 ? part : stringSlice(part, 0, equals);
		const value = equals < 0 ? "" : stringSlice(part, equals + 1);
		arrayPush(list, { __proto__: null, name: formDecode(name), value: formDecode(value) });
	}
	return list;
};

const formatPairs = (list) => {
	let out = "";
	for (let i = 0; i < list.length; i++) out += (i > 0 ? "&" : "") + formEncode(list[i].name) + "=" + formEncode(list[i].value);
	return out;
};

let rereadParams; // (params, query) and
let recordOf; // (url): the private fields of the two classes, for each other
let attaching = null; // the URL whose searchParams are being made

const arraySort = uncurry(Array.prototype.sort);

class URLSearchParams {
	#list = bareArray();
	#url = null; // the URL that they are the query of

	constructor(init = "") {
		if (typeof init === "object" && init !== null && attaching === init) {
			this.#url = init;
			this.#list = parsePairs(recordOf(init).query ?? "");
			return;
		}
		if ((typeof init === "object" && init !== null) || typeof init === "function") {
			const iterate = init[SymbolIterator];
			if (iterate !== undefined && iterate !== null) {
				for (const pair of init) {
					if (pair === null || typeof pair !== "object") throw fault(OriginalTypeError, "URLSearchParams: each item must be a pair of a name and a value");
					const two = bareArray();
					for (const item of pair) arrayPush(two, usv(item));
					if (two.length !== 2) throw fault(OriginalTypeError, "URLSearchParams: each item must be a pair of a name and a value");
					arrayPush(this.#list, { __proto__: null, name: two[0], value: two[1] });
				}
				return;
			}
			const names = ownKeys(init);
			for (let i = 0; i < names.length; i++) {
				if (!getOwnPropertyDescriptor(init, names[i])?.enumerable) continue;
				const name = usv(names[i]);
				this.#set(name, usv(init[names[i]]));
			}
			return;
		}
		const s = usv(init);
		this.#list = parsePairs(s[0] === "?" ? stringSlice(s, 1) : s);
	}

	#changed() {
		if (this.#url === null) return;
		const query = formatPairs(this.#list);
		recordOf(this.#url).query = query === "" ? null : query;
	}
	#set(name, value) {
		const kept = bareArray();
		let done = false;
		for (let i = 0; i < this.#list.length; i++) {
			const pair = this.#list[i];
			if (pair.name !== name) arrayPush(kept, pair);
			else if (!done) {
				done = true;
				arrayPush(kept, { __proto__: null, name, value });
			}
		}
		if (!done) arrayPush(kept, { __proto__: null, name, value });
		this.#list = kept;
	}
	// The URL's query was set: the same object shows the new pairs.
	static #reread(params, query) { params.#list = parsePairs(query); }
	static { rereadParams = URLSearchParams.#reread; }

	get size() { return this.#list.length; }
	append(name, value) {
		need(arguments.length, 2, "URLSearchParams.append");
		arrayPush(this.#list, { __proto__: null, name: usv(name), value: usv(value) });
		this.#changed();
	}
	delete(name, value = undefined) {
		need(arguments.length, 1, "URLSearchParams.delete");
		name = usv(name);
		if (value !== undefined) value = usv(value);
		const kept = bareArray();
		for (let i = 0; i < this.#list.length; i++) {
			const pair = this.#list[i];
			if (pair.name !== name || (value !== undefined && pair.value !== value)) arrayPush(kept, pair);
		}
		this.#list = kept;
		this.#changed();
	}
	get(name) {
		need(arguments.length, 1, "URLSearchParams.get");
		name = usv(name);
		for (let i = 0; i < this.#list.length; i++) if (this.#list[i].name === name) return this.#list[i].value;
		return null;
	}
	getAll(name) {
		need(arguments.length, 1, "URLSearchParams.getAll");
		name = usv(name);
		const out = [];
		for (let i = 0; i < this.#list.length; i++) if (this.#list[i].name === name) define(out, out.length, this.#list[i].value, true);
		return out;
	}
	has(name, value = undefined) {
		need(arguments.length, 1, "URLSearchParams.has");
		name = usv(name);
		if (value !== undefined) value = usv(value);
		for (let i = 0; i < this.#list.length; i++) {
			const pair = this.#list[i];
			if (pair.name === name && (value === undefined || pair.value === value)) return true;
		}
		return false;
	}
	set(name, value) {
		need(arguments.length, 2, "URLSearchParams.set");
		this.#set(usv(name), usv(value));
		this.#changed();
	}
	sort() {
		arraySort(this.#list, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
		this.#changed();
	}
	forEach(callback, thisArg = undefined) {
		if (typeof callback !== "function") throw fault(OriginalTypeError, "URLSearchParams.forEach: the callback must be a function");
		for (let i = 0; i < this.#list.length; i++) {
			const { name, value } = this.#list[i];
			apply(callback, thisArg, [value, name, this]);
		}
	}
	*entries() { for (let i = 0; i < this.#list.length; i++) yield [this.#list[i].name, this.#list[i].value]; }
	*keys() { for (let i = 0; i < this.#list.length; i++) yield this.#list[i].name; }
	*values() { for (let i = 0; i < this.#list.length; i++) yield this.#list[i].value; }
	toString() { return formatPairs(this.#list); }
}
define(URLSearchParams.prototype, SymbolIterator, URLSearchParams.prototype.entries);

const parseOrThrow = (url, base) => {
	let baseRecord = null;
	if (base !== undefined) {
		baseRecord = parseRecord(usv(base), null);
		if (baseRecord === null) throw fault(OriginalTypeError, "Invalid base URL: " + label(usv(base)));
	}
	const record = parseRecord(usv(url), baseRecord);
	if (record === null) throw fault(OriginalTypeError, "Invalid URL: " + label(usv(url)));
	return record;
};

// tryParse gives null where parseOrThrow throws for the URL's sake.
const tryParse = (url, base) => {
	const baseRecord = base === undefined ? null : parseRecord(usv(base), null);
	return base !== undefined && baseRecord === null ? null : parseRecord(usv(url), baseRecord);
};

const cannotHaveCredentials = (url) => url.host === null || url.host === "" || url.scheme === "file";

// stripOpaque drops the spaces at the end of an opaque path once nothing follows it.
const stripOpaque = (url) => {
	if (typeof url.path !== "string" || url.fragment !== null || url.query !== null) return;
	let end = url.path.length;
	while (end > 0 && url.path[end - 1] === " ") end--;
	url.path = stringSlice(url.path, 0, end);
};

class URL {
	#url;
	#params = null;

	constructor(url, base = undefined) {
		need(arguments.length, 1, "URL");
		this.#url = parseOrThrow(url, base);
	}
	static { recordOf = (url) => url.#url; }

	static canParse(url, base = undefined) { return tryParse(url, base) !== null; }
	static parse(url, base = undefined) { return tryParse(url, base) === null ? null : new URL(url, base); }

	#setQuery(query) {
		this.#url.query = query;
		if (this.#params !== null) rereadParams(this.#params, query ?? "");
	}
	// #try parses into a copy, so that a failure in the middle changes nothing.
	#try(input, state, prepare) {
		const copy = copyRecord(this.#url);
		prepare?.(copy);
		const changed = parseRecord(input, null, copy, state);
		if (changed !== null) this.#url = changed;
	}

	get href() { return formatURL(this.#url); }
	set href(v) {
		this.#url = parseOrThrow(v, undefined);
		this.#setQuery(this.#url.query);
	}
	get origin() {
		const url = this.#url;
		if (url.scheme === "blob") {
			const inner = typeof url.path === "string" ? parseRecord(url.path, null) : null;
			return inner !== null && (inner.scheme === "http" || inner.scheme === "https") ? inner.scheme + "://" + formatHost(inner) : "null";
		}
		return isSpecial(url) && url.scheme !== "file" ? url.scheme + "://" + formatHost(url) : "null";
	}
	get protocol() { return this.#url.scheme + ":"; }
	set protocol(v) { this.#try(usv(v) + ":", "scheme start"); }
	get username() { return this.#url.username; }
	set username(v) {
		v = usv(v);
		if (!cannotHaveCredentials(this.#url)) this.#url.username = percentEncodeSet(v, userinfoSet);
	}
	get password() { return this.#url.password; }
	set password(v) {
		v = usv(v);
		if (!cannotHaveCredentials(this.#url)) this.#url.password = percentEncodeSet(v, userinfoSet);
	}
	get host() { return formatHost(this.#url); }
	set host(v) {
		v = usv(v);
		if (typeof this.#url.path !== "string") this.#setHost(v, "host");
	}
	// A port that is wrong does not undo the host before it, and a bad host changes nothing.
	#setHost(v, state) {
		const copy = copyRecord(this.#url);
		const changed = parseRecord(v, null, copy, state);
		if (changed !== null || (copy.host !== this.#url.host && state === "host")) this.#url = copy;
	}
	get hostname() { return this.#url.host ?? ""; }
	set hostname(v) {
		v = usv(v);
		if (typeof this.#url.path !== "string") this.#setHost(v, "hostname");
	}
	get port() { return this.#url.port === null ? "" : toString(this.#url.port); }
	set port(v) {
		v = usv(v);
		if (cannotHaveCredentials(this.#url)) return;
		if (v === "") this.#url.port = null;
		else this.#try(v, "port");
	}
	get pathname() { return formatPath(this.#url); }
	set pathname(v) {
		v = usv(v);
		if (typeof this.#url.path !== "string") this.#try(v, "path start", (copy) => { copy.path = bareArray(); });
	}
	get search() { return this.#url.query === null || this.#url.query === "" ? "" : "?" + this.#url.query; }
	set search(v) {
		v = usv(v);
		if (v === "") {
			this.#setQuery(null);
			stripOpaque(this.#url);
			return;
		}
		this.#try(v[0] === "?" ? stringSlice(v, 1) : v, "query", (copy) => { copy.query = ""; });
		this.#setQuery(this.#url.query);
	}
	get searchParams() {
		if (this.#params === null) {
			attaching = this;
			this.#params = new URLSearchParams(this);
			attaching = null;
		}
		return this.#params;
	}
	get hash() { return this.#url.fragment === null || this.#url.fragment === "" ? "" : "#" + this.#url.fragment; }
	set hash(v) {
		v = usv(v);
		if (v === "") {
			this.#url.fragment = null;
			stripOpaque(this.#url);
			return;
		}
		this.#try(v[0] === "#" ? stringSlice(v, 1) : v, "fragment", (copy) => { copy.fragment = ""; });
	}
	toString() { return formatURL(this.#url); }
	toJSON() { return formatURL(this.#url); }
}

for (const Class of [URL, URLSearchParams]) {
	// As in browsers, and so that Object.keys of an object with them spread shows what is there.
	for (const key of ownKeys(Class.prototype)) {
		if (typeof key === "string" && key !== "constructor") defineProperty(Class.prototype, key, { __proto__: null, enumerable: true });
	}
}
exposeClass("URL", URL);
exposeClass("URLSearchParams", URLSearchParams);
