// Chapter 12: URL records and their parser (https://url.spec.whatwg.org; the states have the
// standard's names). International domain names are mapped by Unicode normalization and
// lower case, without the tables of UTS #46: the common ones come out right, and the
// checks for bidirectional labels are not made.

const defaultPorts = { __proto__: null, ftp: 21, file: null, http: 80, https: 443, ws: 80, wss: 443 };
const isSpecial = (url) => url.scheme in defaultPorts;

const newRecord = () => ({ __proto__: null, scheme: "", username: "", password: "", host: null, port: null, path: bareArray(), query: null, fragment: null });
const copyRecord = (u) => {
	const copy = { __proto__: null, ...u };
	if (typeof u.path !== "string") {
		copy.path = bareArray();
		for (let i = 0; i < u.path.length; i++) arrayPush(copy.path, u.path[i]);
	}
	return copy;
};

const isAlpha = (c) => (c >= "a" && c <= "z") || (c >= "A" && c <= "Z");
const isDigit = (c) => c >= "0" && c <= "9" && c.length === 1;
const hexValue = (c) => {
	if (isDigit(c)) return charCodeAt(c, 0) - 48;
	const l = c === "" ? "" : lowerCase(c);
	return l >= "a" && l <= "f" ? charCodeAt(l, 0) - 87 : -1;
};

// The percent-encode sets: what each adds to controls and everything past U+007E.
const fragmentSet = " \"<>`";
const querySet = " \"#<>";
const specialQuerySet = querySet + "'";
const pathSet = querySet + "?^`{}";
const userinfoSet = pathSet + "/:;=@[\\]|";
const formSet = userinfoSet + "$%&,+!'()~";

const percentByte = (n) => "%" + "0123456789ABCDEF"[n >> 4] + "0123456789ABCDEF"[n & 15];

// percentEncodeSet works on whole characters: s has no lone surrogates.
const percentEncodeSet = (s, set) => {
	let out = "";
	let kept = 0;
	for (let i = 0; i < s.length; i++) {
		const code = charCodeAt(s, i);
		if (code > 0x1f && code < 0x7f && indexOf(set, s[i]) < 0) continue;
		out += stringSlice(s, kept, i);
		if (code < 0x80) out += percentByte(code);
		else if (code >= 0xd800 && code <= 0xdbff) out += percentEncode(stringSlice(s, i, ++i + 1));
		else out += percentEncode(s[i]);
		kept = i + 1;
	}
	return kept === 0 ? s : out + stringSlice(s, kept);
};

// percentDecodeText gives the text of s after its %XX are bytes.
const percentDecodeText = (s) => {
	if (indexOf(s, "%") < 0) return s;
	const bytes = encodeUTF8(s);
	const n = typedArrayLength(bytes);
	let end = 0;
	for (let i = 0; i < n; i++) {
		let b = bytes[i];
		if (b === 0x25 && i + 2 < n) {
			const high = hexValue(fromCharCode(bytes[i + 1]));
			const low = hexValue(fromCharCode(bytes[i + 2]));
			if (high >= 0 && low >= 0) {
				b = high * 16 + low;
				i += 2;
			}
		}
		bytes[end++] = b;
	}
	return decodeUTF8(new OriginalUint8Array(typedArrayBuffer(bytes), 0, end));
};

const split = (s, separator) => {
	const out = bareArray();
	for (let at = 0; ; ) {
		const end = indexOf(s, separator, at);
		if (end < 0) {
			arrayPush(out, stringSlice(s, at));
			return out;
		}
		arrayPush(out, stringSlice(s, at, end));
		at = end + separator.length;
	}
};

// join is Array.prototype.join for arrays without a prototype, whose items are strings.
const join = (list, separator) => {
	let out = "";
	for (let i = 0; i < list.length; i++) out += (i > 0 ? separator : "") + list[i];
	return out;
};

// --- hosts ---

const regExpExec = uncurry(RegExp.prototype.exec);
const forbiddenHost = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const forbiddenDomain = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;
const found = (pattern, s) => regExpExec(pattern, s) !== null;

// parseHost gives a host as it is written in a URL, or null.
const parseHost = (s, isOpaque) => {
	if (s[0] === "[") {
		if (s[s.length - 1] !== "]") return null;
		const address = parseIPv6(stringSlice(s, 1, -1));
		return address === null ? null : "[" + formatIPv6(address) + "]";
	}
	if (isOpaque) return found(forbiddenHost, s) ? null : percentEncodeSet(s, "");
	const domain = domainToASCII(percentDecodeText(s));
	if (domain === null || domain === "" || found(forbiddenDomain, domain)) return null;
	return endsInNumber(domain) ? parseIPv4(domain) : domain;
};

const parseIPv4Number = (s) => {
	if (s === "") return NaN;
	let radix = 10;
	if (s.length >= 2 && s[0] === "0" && (s[1] === "x" || s[1] === "X")) {
		s = stringSlice(s, 2);
		radix = 16;
	} else if (s.length >= 2 && s[0] === "0") {
		s = stringSlice(s, 1);
		radix = 8;
	}
	let n = 0;
	for (let i = 0; i < s.length; i++) {
		const d = hexValue(s[i]);
		if (d < 0 || d >= radix) return NaN;
		n = n * radix + d;
	}
	return n;
};

const allDigits = (s) => {
	for (let i = 0; i < s.length; i++) if (!isDigit(s[i])) return false;
	return s !== "";
};

const endsInNumber = (s) => {
	const parts = split(s, ".");
	if (parts[parts.length - 1] === "") {
		if (parts.length === 1) return false;
		arrayPop(parts);
	}
	const last = parts[parts.length - 1];
	return allDigits(last) || (last.length >= 2 && last[0] === "0" && lowerCase(last[1]) === "x" && parseIPv4Number(last) >= 0);
};

const parseIPv4 = (s) => {
	const parts = split(s, ".");
	if (parts[parts.length - 1] === "" && parts.length > 1) arrayPop(parts);
	if (parts.length > 4) return null;
	let address = 0;
	for (let i = 0; i < parts.length; i++) {
		const n = parseIPv4Number(parts[i]);
		const last = i === parts.length - 1;
		if (!(n < (last ? 256 ** (5 - parts.length) : 256))) return null;
		address += last ? n : n * 256 ** (3 - i);
	}
	return floor(address / 2 ** 24) + "." + (floor(address / 2 ** 16) % 256) + "." + (floor(address / 256) % 256) + "." + (address % 256);
};

// parseIPv6 gives eight pieces, or null.
const parseIPv6 = (s) => {
	const pieces = [0, 0, 0, 0, 0, 0, 0, 0];
	let n = 0;
	let compress = -1;
	let p = 0;
	if (s[0] === ":") {
		if (s[1] !== ":") return null;
		p = 2;
		compress = ++n;
	}
	while (p < s.length) {
		if (n === 8) return null;
		if (s[p] === ":") {
			if (compress >= 0) return null;
			p++;
			compress = ++n;
			continue;
		}
		let value = 0;
		let length = 0;
		while (length < 4 && p < s.length && hexValue(s[p]) >= 0) {
			value = value * 16 + hexValue(s[p++]);
			length++;
		}
		if (s[p] === ".") {
			if (length === 0) return null;
			p -= length;
			if (n > 6) return null;
			let seen = 0;
			while (p < s.length) {
				let octet = -1;
				if (seen > 0) {
					if (s[p] !== "." || seen >= 4) return null;
					p++;
				}
				if (p >= s.length || !isDigit(s[p])) return null;
				while (p < s.length && isDigit(s[p])) {
					const d = hexValue(s[p]);
					if (octet === 0) return null;
					octet = octet < 0 ? d : octet * 10 + d;
					if (octet > 255) return null;
					p++;
				}
				pieces[n] = pieces[n] * 256 + octet;
				if (++seen === 2 || seen === 4) n++;
			}
			if (seen !== 4) return null;
			break;
		}
		if (s[p] === ":") {
			if (++p >= s.length) return null;
		} else if (p < s.length) return null;
		pieces[n++] = value;
	}
	if (compress >= 0) {
		let swaps = n - compress;
		n = 7;
		while (n !== 0 && swaps > 0) {
			const other = compress + swaps - 1;
			const piece = pieces[other];
			pieces[other] = pieces[n];
			pieces[n] = piece;
			n--;
			swaps--;
		}
	} else if (n !== 8) return null;
	return pieces;
};

const formatIPv6 = (pieces) => {
	let best = -1;
	let bestLength = 1;
	for (let i = 0; i < 8; i++) {
		let length = 0;
		while (i + length < 8 && pieces[i + length] === 0) length++;
		if (length > bestLength) {
			best = i;
			bestLength = length;
		}
		i += length;
	}
	let out = "";
	for (let i = 0; i < 8; i++) {
		if (i === best) {
			out += i === 0 ? "::" : ":";
			i += bestLength - 1;
			continue;
		}
		out += numberToString(pieces[i], 16) + (i < 7 ? ":" : "");
	}
	return out;
};

// --- domains ---

const ignoredInDomains = /[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff\u{e0100}-\u{e01ef}]/u;
const neverInDomains = /[\p{C}\p{Z}\ufffd\u2ff0-\u2fff]/u;
const startsWithMark = /^\p{M}/u;
// Joiners are allowed after a virama, and between Arabic letters (RFC 5892, A.1 and A.2, the
// joining types left out).
const strayJoiner = /(?<![\p{Script=Arabic}\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u0f84\u1039])[\u200c\u200d]/u;

const mapDomain = (s) => {
	s = normalize(s, "NFKC");
	let out = "";
	for (let i = 0; i < s.length; ) {
		const ch = fromCodePoint(codePointAt(s, i));
		i += ch.length;
		if (ch === "\u3002") out += ".";
		// Each on its own: there is no final sigma in a domain.
		else if (!found(ignoredInDomains, ch)) out += lowerCase(ch);
	}
	return normalize(out, "NFKC");
};

const validLabel = (label) => {
	if (normalize(label, "NFC") !== label || found(startsWithMark, label) || found(strayJoiner, label)) return false;
	for (let i = 0; i < label.length; ) {
		const ch = fromCodePoint(codePointAt(label, i));
		i += ch.length;
		if (ch !== "\u200c" && ch !== "\u200d" && found(neverInDomains, ch)) return false;
	}
	return true;
};

const isASCII = (s) => {
	for (let i = 0; i < s.length; i++) if (charCodeAt(s, i) > 0x7f) return false;
	return true;
};

const domainToASCII = (domain) => {
	const plain = isASCII(domain);
	const labels = split(plain ? lowerCase(domain) : mapDomain(domain), ".");
	for (let i = 0; i < labels.length; i++) {
		const l = labels[i];
		if (startsWith(l, "xn--")) {
			const decoded = punycodeDecode(stringSlice(l, 4));
			if (decoded === null || decoded === "" || isASCII(decoded) || mapDomain(decoded) !== decoded || !validLabel(decoded)) return null;
		} else if (!isASCII(l)) {
			if (!validLabel(l)) return null;
			labels[i] = "xn--" + punycodeEncode(l);
		}
	}
	return join(labels, ".");
};

// Punycode, RFC 3492: base 36, tmin 1, tmax 26, skew 38, damp 700, initial bias 72.
const adapt = (delta, points, first) => {
	delta = first ? floor(delta / 700) : delta >> 1;
	delta += floor(delta / points);
	let k = 0;
	for (; delta > 455; k += 36) delta = floor(delta / 35);
	return k + floor((36 * delta) / (delta + 38));
};
const punycodeDigit = (d) => fromCharCode(d < 26 ? d + 97 : d + 22);

const punycodeEncode = (s) => {
	const points = bareArray();
	let out = "";
	for (let i = 0; i < s.length; ) {
		const c = codePointAt(s, i);
		i += c > 0xffff ? 2 : 1;
		arrayPush(points, c);
		if (c < 0x80) out += fromCharCode(c);
	}
	const basic = out.length;
	let done = basic;
	if (basic > 0) out += "-";
	let n = 0x80;
	let delta = 0;
	let bias = 72;
	while (done < points.length) {
		let next = 0x110000;
		for (let i = 0; i < points.length; i++) if (points[i] >= n && points[i] < next) next = points[i];
		delta += (next - n) * (done + 1);
		n = next;
		for (let i = 0; i < points.length; i++) {
			if (points[i] < n) delta++;
			if (points[i] !== n) continue;
			let q = delta;
			for (let k = 36; ; k += 36) {
				const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
				if (q < t) break;
				out += punycodeDigit(t + ((q - t) % (36 - t)));
				q = floor((q - t) / (36 - t));
			}
			out += punycodeDigit(q);
			bias = adapt(delta, done + 1, done === basic);
			delta = 0;
			done++;
		}
		delta++;
		n++;
	}
	return out;
};

const punycodeDecode = (s) => {
	let points = bareArray();
	const basic = lastIndexOf(s, "-");
	for (let i = 0; i < basic; i++) arrayPush(points, charCodeAt(s, i));
	let n = 0x80;
	let i = 0;
	let bias = 72;
	for (let p = basic > 0 ? basic + 1 : 0; p < s.length; ) {
		const old = i;
		for (let w = 1, k = 36; ; k += 36) {
			if (p >= s.length) return null;
			const c = charCodeAt(s, p++);
			const digit = c >= 97 && c <= 122 ? c - 97 : c >= 65 && c <= 90 ? c - 65 : c >= 48 && c <= 57 ? c - 22 : 36;
			if (digit >= 36) return null;
			i += digit * w;
			if (i > 0x7fffffff) return null;
			const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
			if (digit < t) break;
			w *= 36 - t;
		}
		const length = points.length + 1;
		bias = adapt(i - old, length, old === 0);
		n += floor(i / length);
		i %= length;
		if (n > 0x10ffff) return null;
		const grown = bareArray();
		for (let j = 0; j < length; j++) arrayPush(grown, j < i ? points[j] : j === i ? n : points[j - 1]);
		points = grown;
		i++;
	}
	let out = "";
	for (let j = 0; j < points.length; j++) out += fromCodePoint(points[j]);
	return toWellFormed(out) === out ? out : null;
};

// --- the parser ---

const isDriveLetter = (s) => s.length === 2 && isAlpha(s[0]) && (s[1] === ":" || s[1] === "|");
const isNormalDriveLetter = (s) => isDriveLetter(s) && s[1] === ":";
const startsWithDriveLetter = (s, p) => {
	if (!isDriveLetter(stringSlice(s, p, p + 2))) return false;
	return p + 2 === s.length || indexOf("/\\?#", s[p + 2]) >= 0;
};
const isSingleDot = (s) => s === "." || lowerCase(s) === "%2e";
const isDoubleDot = (s) => s === ".." || (s.length <= 6 && (s = lowerCase(s), s === ".%2e" || s === "%2e." || s === "%2e%2e"));

const shortenPath = (url) => {
	if (url.scheme === "file" && url.path.length === 1 && isNormalDriveLetter(url.path[0])) return;
	arrayPop(url.path);
};

const hasCredentials = (url) => url.username !== "" || url.password !== "";

const tabsAndNewlines = (s) => {
	if (indexOf(s, "\t") < 0 && indexOf(s, "\n") < 0 && indexOf(s, "\r") < 0) return s;
	return join(split(join(split(join(split(s, "\t"), ""), "\n"), ""), "\r"), "");
};

const trimControls = (s) => {
	let start = 0;
	let end = s.length;
	while (start < end && charCodeAt(s, start) <= 0x20) start++;
	while (end > start && charCodeAt(s, end - 1) <= 0x20) end--;
	return stringSlice(s, start, end);
};

// parseRecord is the standard's basic URL parser. It gives a record, or null for a failure. With
// a record and a state to start in it changes the record, for the setters.
const parseRecord = (input, base, given, override) => {
	const url = given ?? newRecord();
	if (given === undefined) input = trimControls(input);
	input = tabsAndNewlines(input);
	let state = override ?? "scheme start";
	let buffer = "";
	let atSign = false;
	let brackets = false;
	let passwordToken = false;
	for (let p = 0; ; p++) {
		const c = p < input.length ? input[p] : "";
		switch (state) {
			case "scheme start":
				if (isAlpha(c)) {
					buffer += lowerCase(c);
					state = "scheme";
				} else if (override === undefined) {
					state = "no scheme";
					p--;
				} else return null;
				break;
			case "scheme":
				if (isAlpha(c) || isDigit(c) || c === "+" || c === "-" || c === ".") {
					buffer += lowerCase(c);
				} else if (c === ":") {
					if (override !== undefined) {
						if (isSpecial(url) !== buffer in defaultPorts) return url;
						if (buffer === "file" && (hasCredentials(url) || url.port !== null)) return url;
						if (url.scheme === "file" && (url.host === "" || url.host === null)) return url;
						url.scheme = buffer;
						if (url.port === defaultPorts[url.scheme]) url.port = null;
						return url;
					}
					url.scheme = buffer;
					buffer = "";
					if (url.scheme === "file") state = "file";
					else if (isSpecial(url) && base !== null && base.scheme === url.scheme) state = "special relative or authority";
					else if (isSpecial(url)) state = "special authority slashes";
					else if (input[p + 1] === "/") {
						state = "path or authority";
						p++;
					} else {
						url.path = "";
						state = "opaque path";
					}
				} else if (override === undefined) {
					buffer = "";
					state = "no scheme";
					p = -1;
					continue; // from the start, even if this was the end
				} else return null;
				break;
			case "no scheme":
				if (base === null || (typeof base.path === "string" && c !== "#")) return null;
				if (typeof base.path === "string") {
					url.scheme = base.scheme;
					url.path = base.path;
					url.query = base.query;
					url.fragment = "";
					state = "fragment";
				} else {
					state = base.scheme === "file" ? "file" : "relative";
					p--;
				}
				break;
			case "special relative or authority":
				if (c === "/" && input[p + 1] === "/") {
					state = "special authority ignore slashes";
					p++;
				} else {
					state = "relative";
					p--;
				}
				break;
			case "path or authority":
				if (c === "/") state = "authority";
				else {
					state = "path";
					p--;
				}
				break;
			case "relative":
				url.scheme = base.scheme;
				if (c === "/") state = "relative slash";
				else if (isSpecial(url) && c === "\\") state = "relative slash";
				else {
					takeBase(url, base);
					if (c === "?") {
						url.query = "";
						state = "query";
					} else if (c === "#") {
						url.fragment = "";
						state = "fragment";
					} else if (c !== "") {
						url.query = null;
						shortenPath(url);
						state = "path";
						p--;
					}
				}
				break;
			case "relative slash":
				if (isSpecial(url) && (c === "/" || c === "\\")) state = "special authority ignore slashes";
				else if (c === "/") state = "authority";
				else {
					url.username = base.username;
					url.password = base.password;
					url.host = base.host;
					url.port = base.port;
					state = "path";
					p--;
				}
				break;
			case "special authority slashes":
				if (c === "/" && input[p + 1] === "/") p++;
				else p--;
				state = "special authority ignore slashes";
				break;
			case "special authority ignore slashes":
				if (c !== "/" && c !== "\\") {
					state = "authority";
					p--;
				}
				break;
			case "authority":
				if (c === "@") {
					if (atSign) buffer = "%40" + buffer;
					atSign = true;
					const colon = passwordToken ? -1 : indexOf(buffer, ":");
					if (passwordToken) url.password += percentEncodeSet(buffer, userinfoSet);
					else if (colon < 0) url.username += percentEncodeSet(buffer, userinfoSet);
					else {
						passwordToken = true;
						url.username += percentEncodeSet(stringSlice(buffer, 0, colon), userinfoSet);
						url.password += percentEncodeSet(stringSlice(buffer, colon + 1), userinfoSet);
					}
					buffer = "";
				} else if (c === "" || c === "/" || c === "?" || c === "#" || (isSpecial(url) && c === "\\")) {
					if (atSign && buffer === "") return null;
					p -= buffer.length + 1;
					buffer = "";
					state = "host";
				} else buffer += c;
				break;
			case "host":
			case "hostname":
				if (override !== undefined && url.scheme === "file") {
					p--;
					state = "file host";
				} else if (c === ":" && !brackets) {
					if (buffer === "") return null;
					if (override === "hostname") return null;
					const host = parseHost(buffer, !isSpecial(url));
					if (host === null) return null;
					url.host = host;
					buffer = "";
					state = "port";
				} else if (c === "" || c === "/" || c === "?" || c === "#" || (isSpecial(url) && c === "\\")) {
					p--;
					if (isSpecial(url) && buffer === "") return null;
					if (override !== undefined && buffer === "" && (hasCredentials(url) || url.port !== null)) return null;
					const host = parseHost(buffer, !isSpecial(url));
					if (host === null) return null;
					url.host = host;
					buffer = "";
					state = "path start";
					if (override !== undefined) return url;
				} else {
					if (c === "[") brackets = true;
					if (c === "]") brackets = false;
					buffer += c;
				}
				break;
			case "port":
				if (isDigit(c)) buffer += c;
				else if (c === "" || c === "/" || c === "?" || c === "#" || (isSpecial(url) && c === "\\") || override !== undefined) {
					if (buffer !== "") {
						const port = toNumber(buffer);
						if (port > 65535) return null;
						url.port = port === defaultPorts[url.scheme] ? null : port;
						buffer = "";
						if (override !== undefined) return url;
					}
					if (override !== undefined) return null;
					state = "path start";
					p--;
				} else return null;
				break;
			case "file":
				url.scheme = "file";
				url.host = "";
				if (c === "/" || c === "\\") state = "file slash";
				else if (base !== null && base.scheme === "file") {
					takeBase(url, base);
					if (c === "?") {
						url.query = "";
						state = "query";
					} else if (c === "#") {
						url.fragment = "";
						state = "fragment";
					} else if (c !== "") {
						url.query = null;
						if (startsWithDriveLetter(input, p)) url.path = bareArray();
						else shortenPath(url);
						state = "path";
						p--;
					}
				} else {
					state = "path";
					p--;
				}
				break;
			case "file slash":
				if (c === "/" || c === "\\") state = "file host";
				else {
					if (base !== null && base.scheme === "file") {
						url.host = base.host;
						if (!startsWithDriveLetter(input, p) && base.path.length > 0 && isNormalDriveLetter(base.path[0])) arrayPush(url.path, base.path[0]);
					}
					state = "path";
					p--;
				}
				break;
			case "file host":
				if (c === "" || c === "/" || c === "\\" || c === "?" || c === "#") {
					p--;
					if (override === undefined && isDriveLetter(buffer)) state = "path"; // the buffer goes on in the path
					else if (buffer === "") {
						url.host = "";
						if (override !== undefined) return url;
						state = "path start";
					} else {
						const host = parseHost(buffer, !isSpecial(url));
						if (host === null) return null;
						url.host = host === "localhost" ? "" : host;
						if (override !== undefined) return url;
						buffer = "";
						state = "path start";
					}
				} else buffer += c;
				break;
			case "path start":
				if (isSpecial(url)) {
					state = "path";
					if (c !== "/" && c !== "\\") p--;
				} else if (override === undefined && c === "?") {
					url.query = "";
					state = "query";
				} else if (override === undefined && c === "#") {
					url.fragment = "";
					state = "fragment";
				} else if (c !== "") {
					state = "path";
					if (c !== "/") p--;
				} else if (override !== undefined && url.host === null) arrayPush(url.path, "");
				break;
			case "path": {
				const slash = c === "/" || (isSpecial(url) && c === "\\");
				if (c === "" || slash || (override === undefined && (c === "?" || c === "#"))) {
					if (isDoubleDot(buffer)) {
						shortenPath(url);
						if (!slash) arrayPush(url.path, "");
					} else if (isSingleDot(buffer)) {
						if (!slash) arrayPush(url.path, "");
					} else {
						if (url.scheme === "file" && url.path.length === 0 && isDriveLetter(buffer)) buffer = buffer[0] + ":";
						arrayPush(url.path, buffer);
					}
					buffer = "";
					if (c === "?") {
						url.query = "";
						state = "query";
					}
					if (c === "#") {
						url.fragment = "";
						state = "fragment";
					}
				} else {
					const code = charCodeAt(c, 0);
					if (code >= 0xd800 && code <= 0xdbff) buffer += percentEncode(stringSlice(input, p, ++p + 1));
					else buffer += percentEncodeSet(c, pathSet);
				}
				break;
			}
			case "opaque path": {
				let end = p;
				while (end < input.length && input[end] !== "?" && input[end] !== "#") end++;
				url.path = percentEncodeSet(stringSlice(input, p, end), "");
				p = end;
				if (input[p] === "?") {
					url.query = "";
					state = "query";
				} else if (input[p] === "#") {
					url.fragment = "";
					state = "fragment";
				}
				break;
			}
			case "query": {
				let end = p;
				while (end < input.length && (override !== undefined || input[end] !== "#")) end++;
				url.query += percentEncodeSet(stringSlice(input, p, end), isSpecial(url) ? specialQuerySet : querySet);
				p = end;
				if (p < input.length) {
					url.fragment = "";
					state = "fragment";
				}
				break;
			}
			case "fragment":
				url.fragment += percentEncodeSet(stringSlice(input, p), fragmentSet);
				p = input.length;
				break;
		}
		if (p >= input.length) return url;
	}
};

const takeBase = (url, base) => {
	const copy = copyRecord(base);
	url.username = copy.username;
	url.password = copy.password;
	url.host = copy.host;
	url.port = copy.port;
	url.path = copy.path;
	url.query = copy.query;
};

const formatPath = (url) => {
	if (typeof url.path === "string") return url.path;
	let out = "";
	for (let i = 0; i < url.path.length; i++) out += "/" + url.path[i];
	return out;
};

const formatHost = (url) => (url.host === null ? "" : url.port === null ? url.host : url.host + ":" + url.port);

const formatURL = (url) => {
	let out = url.scheme + ":";
	if (url.host !== null) {
		out += "//";
		if (hasCredentials(url)) out += url.username + (url.password === "" ? "" : ":" + url.password) + "@";
		out += formatHost(url);
	} else if (typeof url.path !== "string" && url.path.length > 1 && url.path[0] === "") out += "/.";
	out += formatPath(url);
	if (url.query !== null) out += "?" + url.query;
	if (url.fragment !== null) out += "#" + url.fragment;
	return out;
};
