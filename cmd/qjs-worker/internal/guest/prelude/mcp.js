// Chapter 7: MCP servers and declaration files (SPEC 7).

// mcpFunction is MCP.<path>: one object in, MCP's own result out.
const mcpFunction = (path, name) => {
	const id = host.find("MCP", path);
	if (id === "") return undefined;
	const shown = "MCP." + path;
	return {
		[name](input) {
			const wrong = input !== undefined && (input === null || typeof input !== "object" || isArray(input))
				? "it takes one object argument, not " + kindOf(input) : surplus(arguments, 1, oneInput);
			return request(new OriginalError(), "mcp", path, input, shown, wrong, jsonParse(id));
		},
	}[name];
};

// $api gives the declarations of a server, or of one of its tools, as a value (SPEC 7.5).
const serverAPI = (server) => ({
	$api(tool, options) {
		let wrong = surplus(arguments, 2, "the name of a function and options");
		if (tool !== undefined && typeof tool !== "string") wrong ??= "the first argument must be the name of a function, not " + kindOf(tool);
		if (options !== undefined && (options === null || typeof options !== "object")) wrong ??= "the second argument must be an object such as {schema: true}";
		const shown = "MCP." + server + ".$api";
		let schema = false;
		try {
			schema = wrong === undefined && options !== undefined && options.schema === true;
		} catch (e) {
			return answer(shown, () => { throw e; }); // thrown by a getter of the guest's
		}
		const asked = wrong === undefined ? { __proto__: null, server, tool: tool === undefined ? "" : toWellFormed(tool), schema } : undefined;
		return request(new OriginalError(), "api", "$api", asked, shown, wrong);
	},
}).$api;

// operations is MCP.<server>.resources or .prompts, if the server offers any of it.
const operations = (server, kind, names) => {
	const group = { __proto__: null };
	for (let i = 0; i < names.length; i++) {
		const f = mcpFunction(server + "." + kind + "." + names[i], names[i]);
		if (f !== undefined) group[names[i]] = f;
	}
	return objectKeys(group).length === 0 ? undefined : freeze(group);
};
const groups = freeze({ __proto__: null, resources: ["list", "read"], prompts: ["list", "get"] });

const mcpServer = (server) => {
	if (host.names("MCP", server) === "") return undefined;
	return lazyObject("MCP." + server, { $api: serverAPI(server) },
		(name) => (hasOwn(groups, name) ? operations(server, name, groups[name]) : mcpFunction(server + "." + name, name)),
		() => host.names("MCP", server));
};

const exposeMCP = () => {
	const $api = { $api() { return request(new OriginalError(), "api", "$api", { server: "" }, "MCP.$api", surplus(arguments, 0, "no arguments; MCP.<server>.$api(tool) tells of one server")); } }.$api;
	expose("MCP", lazyObject("MCP", { $api }, mcpServer, () => host.names("MCP", "")));
};

// wholePath gives the segments of a path joined again, or throws. Slashes around it are
// forgiven.
const wholePath = (shown, path, trailing) => {
	if (typeof path !== "string") throw fault(OriginalTypeError, shown + " takes a path such as \"mcp/index.d.ts\", not " + kindOf(path));
	let from = 0;
	let to = path.length;
	while (from < to && path[from] === "/") from++;
	if (trailing && to > from && path[to - 1] === "/") to--;
	const whole = stringSlice(path, from, to);
	for (let at = 0; whole !== ""; ) {
		let end = indexOf(whole, "/", at);
		if (end < 0) end = whole.length;
		const segment = stringSlice(whole, at, end);
		if (segment === "" || segment === "." || segment === "..") {
			throw fault(OriginalError, shown + ": the path " + jsonStringify(label(path)) + " has an empty segment, \".\" or \"..\"");
		}
		if (end === whole.length) break;
		at = end + 1;
	}
	return whole;
};

const under = (path, prefix) => prefix === "" || path === prefix || startsWith(path, prefix + "/");

// select gives the files below a prefix, of two lists.
const select = (prefix, files, more) => {
	const found = [];
	for (let i = 0; i < files.length + more.length; i++) {
		const file = i < files.length ? files[i] : more[i - files.length];
		if (under(file.path, prefix)) define(found, found.length, file, true);
	}
	return found;
};

// answer makes a promise of what make gives or throws.
const answer = (shown, make) => pending((resolve, reject) => {
	try {
		make(resolve, reject);
	} catch (e) {
		reject(e);
	}
}, shown + "(…)");

// exposeAPI makes API: the declaration files of MCP servers, which came with the cell, and
// those of other tools, which the host is asked for.
const exposeAPI = (hasTools) => {
	const list = (prefix, error) => answer("API.list", (resolve, reject) => {
		const whole = prefix === undefined ? "" : wholePath("API.list", prefix, true);
		const files = jsonParse(host.files());
		if (!hasTools || !(whole === "" || whole === "tools" || startsWith(whole, "tools/"))) {
			resolve(select(whole, files, noFiles));
			return;
		}
		const more = request(error, "api", "list", undefined, "API.list");
		define(more, "constructor", undefined); // see run
		promiseThen(more, (more) => resolve(select(whole, files, more)), reject);
	});
	const read = (path, error) => {
		return answer("API.read", (resolve) => {
			const whole = wholePath("API.read", path, false);
			if (hasTools && startsWith(whole, "tools/")) {
				resolve(request(error, "api", "read", { path: whole }, "API.read"));
				return;
			}
			const text = host.file(whole);
			if (text !== "") {
				resolve(text);
				return;
			}
			report(whole);
			const near = nearest("files", whole, "");
			throw fault(OriginalError, "API.read: there is no file " + jsonStringify(label(whole)) + (near.length === 0 ? "; API.list() lists the files" : eitherOf(near)));
		});
	};
	expose("API", lazyObject("API", {
		list(prefix) { return list(prefix, new OriginalError()); },
		read(path) { return read(path, new OriginalError()); },
	}, () => undefined, () => ""));
};
const noFiles = freeze(bareArray());
