// Chapter 9: TextEncoder and TextDecoder (https://encoding.spec.whatwg.org). The common
// case goes through native functions of the engine; the decoder below is for what they
// refuse: broken bytes, and streams.

const OriginalUint8Array = Uint8Array;
const { fromBase64 } = Uint8Array;
const toBase64 = uncurry(Uint8Array.prototype.toBase64);
const { btoa: latin1ToBase64, atob: base64ToLatin1, escape: escapeLatin1, unescape: unescapeLatin1, encodeURIComponent: percentEncode, decodeURIComponent: percentDecode } = G;

const encodeUTF8 = (s) => apply(fromBase64, OriginalUint8Array, [latin1ToBase64(unescapeLatin1(percentEncode(toWellFormed(s))))]);

// bytesOf gives the bytes that a BufferSource stands for, without a copy.
const bytesOf = (source, what) => {
	if (source === undefined) return new OriginalUint8Array(0);
	try {
		if (typedArrayTag(source) !== undefined) {
			return new OriginalUint8Array(typedArrayBuffer(source), typedArrayByteOffset(source), typedArrayByteLength(source));
		}
		if (isView(source)) return new OriginalUint8Array(viewBuffer(source), viewByteOffset(source), viewByteLength(source));
		bufferByteLength(source);
		return new OriginalUint8Array(source);
	} catch {
		try {
			sharedByteLength(source);
			return new OriginalUint8Array(source);
		} catch {
			throw fault(OriginalTypeError, what + " must be an ArrayBuffer or a view of one");
		}
	}
};

class TextEncoder {
	get encoding() { return "utf-8"; }
	encode(input = "") { return encodeUTF8(toString(input)); }
	encodeInto(source, destination) { return encodeInto(toString(source), destination); }
}

const encodeInto = (s, destination) => {
	if (typedArrayTag(destination) !== "Uint8Array") throw fault(OriginalTypeError, "TextEncoder.encodeInto: the destination must be a Uint8Array");
	const room = typedArrayLength(destination);
	let read = 0;
	let written = 0;
	while (read < s.length) {
		let c = codePointAt(s, read);
		const units = c > 0xffff ? 2 : 1;
		if (c >= 0xd800 && c <= 0xdfff) c = 0xfffd;
		const size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		if (written + size > room) break;
		if (size === 1) {
			destination[written++] = c;
		} else {
			destination[written++] = (size === 2 ? 0xc0 : size === 3 ? 0xe0 : 0xf0) | (c >> (6 * (size - 1)));
			for (let shift = 6 * (size - 2); shift >= 0; shift -= 6) destination[written++] = 0x80 | ((c >> shift) & 0x3f);
		}
		read += units;
	}
	return { read, written };
};

// Labels of the encodings that are here; the others of the standard are a RangeError.
const encodings = safeMap();
for (const [name, labels] of [
	["utf-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"],
	["utf-16le", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"],
	["utf-16be", "unicodefffe utf-16be"],
	["windows-1252", "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252"],
]) {
	for (const l of labels.split(" ")) encodings.set(l, name);
}

const trimASCII = (s) => {
	const blank = (c) => c === 9 || c === 10 || c === 12 || c === 13 || c === 32;
	let start = 0;
	let end = s.length;
	while (start < end && blank(charCodeAt(s, start))) start++;
	while (end > start && blank(charCodeAt(s, end - 1))) end--;
	return stringSlice(s, start, end);
};

const newDecoderState = () => ({ __proto__: null, begun: false, need: 0, seen: 0, point: 0, low: 0x80, high: 0xbf, byte: -1, unit: -1 });

const decodeUTF8 = (bytes) => decoders["utf-8"](bytes, newDecoderState(), false, false);

class TextDecoder {
	#encoding;
	#fatal;
	#ignoreBOM;
	#state = null;
	constructor(label = "utf-8", options = undefined) {
		this.#encoding = encodings.get(lowerCase(trimASCII(toString(label))));
		if (this.#encoding === undefined) throw fault(OriginalRangeError, "TextDecoder: the encoding " + jsonStringify(toString(label)) + " is not supported; utf-8, utf-16le, utf-16be and windows-1252 are");
		this.#fatal = !!options?.fatal;
		this.#ignoreBOM = !!options?.ignoreBOM;
	}
	get encoding() { return this.#encoding; }
	get fatal() { return this.#fatal; }
	get ignoreBOM() { return this.#ignoreBOM; }
	decode(input = undefined, options = undefined) {
		const bytes = bytesOf(input, "TextDecoder.decode: the input");
		const stream = !!options?.stream;
		const state = this.#state ?? newDecoderState();
		this.#state = null;
		const text = decoders[this.#encoding](bytes, state, stream, this.#fatal);
		if (stream) this.#state = state;
		if (state.begun || text === "") return text;
		state.begun = true;
		return this.#ignoreBOM || this.#encoding === "windows-1252" || charCodeAt(text, 0) !== 0xfeff ? text : stringSlice(text, 1);
	}
}

const malformed = (fatal) => {
	if (fatal) throw fault(OriginalTypeError, "TextDecoder.decode: the bytes are not valid in this encoding");
	return "\ufffd";
};

const decoders = {
	__proto__: null,
	"utf-8"(bytes, state, stream, fatal) {
		if (!stream && state.need === 0) {
			try {
				return percentDecode(escapeLatin1(base64ToLatin1(toBase64(bytes, { __proto__: null }))));
			} catch {
				// Not valid UTF-8: the long way says where.
			}
		}
		const n = typedArrayLength(bytes);
		let out = "";
		for (let i = 0; i < n; i++) {
			const b = bytes[i];
			if (state.need === 0) {
				if (b < 0x80) out += fromCharCode(b);
				else if (b >= 0xc2 && b <= 0xdf) (state.need = 1), (state.point = b & 0x1f);
				else if (b >= 0xe0 && b <= 0xef) {
					if (b === 0xe0) state.low = 0xa0;
					if (b === 0xed) state.high = 0x9f;
					state.need = 2;
					state.point = b & 0xf;
				} else if (b >= 0xf0 && b <= 0xf4) {
					if (b === 0xf0) state.low = 0x90;
					if (b === 0xf4) state.high = 0x8f;
					state.need = 3;
					state.point = b & 0x7;
				} else out += malformed(fatal);
				continue;
			}
			const fits = b >= state.low && b <= state.high;
			state.low = 0x80;
			state.high = 0xbf;
			if (!fits) {
				state.need = state.seen = 0;
				out += malformed(fatal);
				i--; // this byte begins something new
				continue;
			}
			state.point = (state.point << 6) | (b & 0x3f);
			if (++state.seen === state.need) {
				out += fromCodePoint(state.point);
				state.need = state.seen = 0;
			}
		}
		if (!stream && state.need !== 0) out += malformed(fatal);
		return out;
	},
	"utf-16le": (bytes, state, stream, fatal) => decodeUTF16(bytes, state, stream, fatal, false),
	"utf-16be": (bytes, state, stream, fatal) => decodeUTF16(bytes, state, stream, fatal, true),
	"windows-1252"(bytes) {
		const n = typedArrayLength(bytes);
		let out = "";
		for (let i = 0; i < n; i++) {
			const b = bytes[i];
			out += b >= 0x80 && b <= 0x9f ? windows1252[b - 0x80] : fromCharCode(b);
		}
		return out;
	},
};

// Bytes 0x80 to 0x9f.
const windows1252 = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

const decodeUTF16 = (bytes, state, stream, fatal, bigEndian) => {
	const n = typedArrayLength(bytes);
	let out = "";
	for (let i = 0; i < n; i++) {
		if (state.byte < 0) {
			state.byte = bytes[i];
			continue;
		}
		const unit = bigEndian ? (state.byte << 8) | bytes[i] : (bytes[i] << 8) | state.byte;
		state.byte = -1;
		if (state.unit >= 0) {
			const lead = state.unit;
			state.unit = -1;
			if (unit >= 0xdc00 && unit <= 0xdfff) {
				out += fromCharCode(lead, unit);
				continue;
			}
			out += malformed(fatal);
		}
		if (unit >= 0xd800 && unit <= 0xdbff) state.unit = unit;
		else if (unit >= 0xdc00 && unit <= 0xdfff) out += malformed(fatal);
		else out += fromCharCode(unit);
	}
	if (!stream && (state.byte >= 0 || state.unit >= 0)) out += malformed(fatal);
	return out;
};

// exposeClass makes a class a global and gives its prototype the tag that such classes have.
const exposeClass = (name, Class) => {
	defineProperty(Class.prototype, SymbolToStringTag, { __proto__: null, value: name, configurable: true });
	expose(name, Class);
};
exposeClass("TextEncoder", TextEncoder);
exposeClass("TextDecoder", TextDecoder);
