// Chapter 11: crypto and performance, of which only what needs no I/O exists (SPEC 4.6).

const maxRandomBytes = 65536; // of one call, as in browsers

const integerArrays = safeSet();
for (const Class of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) integerArrays.add(Class.name);

const fillRandom = (bytes) => {
	const n = typedArrayLength(bytes);
	const random = host.random(n); // one character, U+0000 to U+00FF, a byte
	for (let i = 0; i < n; i++) bytes[i] = charCodeAt(random, i);
};

expose("crypto", {
	getRandomValues(array) {
		let tag;
		try {
			tag = typedArrayTag(array);
		} catch {
			// No typed array; refused below.
		}
		if (!integerArrays.has(tag)) throw cleanStack(new OriginalDOMException("crypto.getRandomValues: the argument must be an integer typed array", "TypeMismatchError"));
		if (typedArrayByteLength(array) > maxRandomBytes) {
			throw cleanStack(new OriginalDOMException("crypto.getRandomValues: at most " + maxRandomBytes + " bytes at a time", "QuotaExceededError"));
		}
		fillRandom(bytesOf(array, "crypto.getRandomValues: the argument"));
		return array;
	},
	randomUUID() {
		const b = new OriginalUint8Array(16);
		fillRandom(b);
		b[6] = (b[6] & 0x0f) | 0x40; // RFC 9562, version 4
		b[8] = (b[8] & 0x3f) | 0x80;
		let s = "";
		for (let i = 0; i < 16; i++) {
			if (i === 4 || i === 6 || i === 8 || i === 10) s += "-";
			s += (b[i] < 16 ? "0" : "") + numberToString(b[i], 16);
		}
		return s;
	},
});

// The engine's own counts from the making of the start image.
expose("performance", { now() { return host.now(); } });
