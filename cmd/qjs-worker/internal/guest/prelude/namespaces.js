// Chapter 8: the scopes of plugins (SPEC 8). The host has serialised and checked them; a call
// names the place of the function in what it serialised, and nothing else.

const separator = "\x1f";

const scopeValue = (node, path, shown) => {
	if (hasOwn(node, "v")) return deepFreeze(node.v);
	if (hasOwn(node, "o")) {
		const object = { __proto__: null };
		for (let i = 0; i < node.o.length; i++) {
			const [key, value] = node.o[i];
			object[key] = scopeValue(value, path + separator + key, shown + "." + key);
		}
		return freeze(object);
	}
	if (hasOwn(node, "a")) {
		const array = [];
		for (let i = 0; i < node.a.length; i++) array[i] = scopeValue(node.a[i], path + separator + i, shown + "[" + i + "]");
		return freeze(array);
	}
	const name = stringSlice(path, lastIndexOf(path, separator) + 1);
	return freeze({
		[name](...args) { return request(new OriginalError(), "namespace", path, bare(args), shown); },
	}[name]);
};

// bare takes the prototype off our own array, so that the guest's toJSON does not see it, and
// arguments off its end that are none.
const bare = (args) => {
	while (args.length > 0 && args[args.length - 1] === undefined) arrayPop(args);
	return setPrototypeOf(args, null);
};

const deepFreeze = (v) => {
	if (v === null || typeof v !== "object") return v;
	const keys = objectKeys(v);
	for (let i = 0; i < keys.length; i++) deepFreeze(v[keys[i]]);
	if (!isArray(v)) setPrototypeOf(v, null);
	return freeze(v);
};

// namespaces puts scopes in place, before any guest code runs.
const namespaces = (text) => {
	const all = { __proto__: null };
	for (const { name, value } of jsonParse(text)) {
		all[name] = scopeValue(value, name, name);
		defineProperty(G, name, { __proto__: null, value: all[name], writable: false, enumerable: false, configurable: false });
	}
	expose("namespaces", freeze(all));
};
