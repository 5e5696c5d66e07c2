package catalog

import "strings"

// stopWords say nothing about which tool is meant. Natural questions are full of
// them, and without this list they favour long descriptions.
var stopWords = wordSet(`
	a about all also am an and any are as at be been being but by can could do does doing for from had has have
	having he her him his how i if in into is it its just let like lot may me might my need of off on one onto or
	our out own per please shall she should so some than that the their them then there these they
	this those to too up us via want was we were what when where which while who whom whose why will with without
	would you your`)

// sameAs lists spellings of one thing, the one that counts first. They meet in
// names, descriptions and queries alike. Two words are written with a space.
var sameAs = [][]string{
	{"pull request", "pr", "merge request", "mr"},
	{"continuous integration", "ci"},
	{"kubernetes", "k8s", "kube"},
	{"organization", "org", "organisation"},
	{"repository", "repo"},
	{"database", "db"},
	{"message", "msg"},
	{"environment", "env"},
	{"sms", "text message"},
	{"configuration", "config", "cfg"},
	{"directory", "dir", "folder"},
	{"document", "doc"},
	{"image", "img", "picture"},
	{"information", "info"},
	{"application", "app"},
	{"authentication", "auth"},
	{"parameter", "param"},
	{"variable", "var"},
	{"administrator", "admin"},
	{"identifier", "id"},
	{"javascript", "js"},
	{"typescript", "ts"},
	{"postgresql", "postgres", "pg"},
	{"cloud formation", "cfn"},
	{"virtual machine", "vm"},
	{"user interface", "ui"},
	{"spreadsheet", "xlsx", "excel"},
	{"email", "mail", "e mail"},
	{"credential", "creds"},
	{"statistics", "stats"},
	{"synchronize", "sync"},
	{"specification", "spec"},
	{"screenshot", "screen shot", "screen capture"},
	{"coordinate", "coord", "coords"},
	{"two factor", "2fa"},
}

// related lists words that often stand for each other in what people ask for,
// though they are not the same. Only queries are widened by them, at a part of
// the weight: the word that was used counts most.
var related = [][]string{
	{"create", "add", "new", "insert", "make", "open"},
	{"delete", "remove", "drop", "erase", "destroy"},
	{"update", "edit", "modify", "change", "patch", "rename"},
	{"get", "fetch", "read", "retrieve", "show", "view"},
	{"list", "browse", "enumerate"},
	{"search", "find", "query", "lookup", "look"},
	{"send", "post", "publish", "write"},
	{"run", "execute", "invoke", "launch", "start", "trigger"},
	{"stop", "cancel", "kill", "terminate", "abort"},
	{"issue", "ticket", "bug", "task", "story"},
	{"sprint", "cycle", "iteration", "milestone"},
	{"channel", "chat", "conversation", "room"},
	{"weather", "forecast", "temperature"},
	{"calendar", "meeting", "event", "appointment", "schedule"},
	{"remind", "reminder", "schedule", "cron", "alarm"},
	{"website", "web", "page", "url", "site", "webpage"},
	{"download", "fetch", "export", "save"},
	{"upload", "import", "attach"},
	{"error", "exception", "crash", "failure"},
	{"log", "logging", "trace"},
	{"metric", "monitor", "monitoring", "dashboard"},
	{"alert", "incident", "alarm", "page"},
	{"translate", "translation", "language"},
	{"chart", "graph", "plot", "diagram"},
	{"file", "document", "attachment"},
	{"comment", "reply", "note", "discussion"},
	{"user", "member", "person", "people", "account"},
	{"customer", "client", "contact"},
	{"invoice", "bill", "payment", "charge", "refund"},
	{"deploy", "deployment", "release", "rollout", "ship"},
	{"branch", "fork"},
	{"commit", "diff", "history"},
	{"pod", "container"},
	{"table", "schema", "column", "row", "record"},
	{"sql", "query"},
	{"click", "press", "tap"},
	{"type", "fill", "input", "enter"},
	{"navigate", "goto", "visit", "open"},
	{"summarize", "summary", "digest"},
	{"map", "location", "place", "geocode", "address"},
	{"route", "direction", "distance"},
	{"stock", "price", "quote"},
	{"transcribe", "transcript", "caption", "subtitle"},
	{"video", "clip", "movie"},
	{"song", "music", "track", "audio"},
	{"secret", "credential", "password", "token"},
	{"permission", "access", "role", "grant"},
	{"pipeline", "workflow", "build", "job", "action"},
	{"restart", "reboot", "reset"},
	{"copy", "duplicate", "clone"},
	{"assign", "assignee", "owner"},
	{"label", "tag"},
	{"approve", "review", "accept"},
	{"merge", "combine", "join"},
	{"undo", "revert", "rollback", "reset", "restore"},
	{"retry", "rerun", "redo", "repeat"},
	{"dialog", "popup", "modal", "prompt"},
	{"todo", "task", "checklist", "reminder"},
	{"remember", "memory", "recall", "store"},
	{"notify", "notification", "alert", "watch", "subscribe", "monitor"},
	{"clean", "prune", "purge", "clear", "cleanup"},
	{"drain", "evict", "cordon"},
	{"near", "nearby", "local", "around"},
	{"place", "business", "shop", "restaurant"},
	{"driving", "direction", "navigation"},
	{"disk", "storage", "space"},
	{"fail", "failure", "failed", "broken", "break", "error"},
	{"rule", "filter"},
	{"archive", "compress", "zip"},
	{"favorite", "bookmark", "star", "pin"},
	{"invite", "add"},
	{"login", "signin", "authentication"},
	{"scrape", "crawl", "extract", "parse"},
	{"capture", "snapshot", "screenshot"},
	{"convert", "transform", "format"},
	{"compare", "diff", "difference"},
	{"count", "total", "number", "statistics"},
	{"latest", "recent", "newest", "last"},
	{"popular", "trending", "top"},
	{"time", "date", "clock", "timezone"},
	{"currency", "exchange", "rate"},
	{"inbox", "email"},
	{"reaction", "emoji"},
	{"phone", "call", "dial"},
	{"deal", "opportunity", "lead"},
	{"company", "business", "account"},
	{"vulnerability", "security", "cve"},
	{"dependency", "package", "library", "module"},
	{"version", "release", "tag"},
	{"scale", "resize", "replica"},
	{"server", "host", "instance", "machine", "node"},
	{"domain", "dns", "hostname"},
	{"certificate", "ssl", "tls"},
	{"bucket", "blob", "object"},
	{"cost", "billing", "price", "spend", "usage"},
	{"backup", "snapshot", "restore"},
	{"similar", "semantic", "vector", "embedding"},
	{"downtime", "maintenance", "outage"},
	{"enable", "activate"},
	{"disable", "deactivate", "mute", "silence"},
	{"wiki", "page", "documentation"},
	{"paper", "article", "publication"},
	{"tweet", "post"},
	{"profile", "account", "bio"},
	{"speech", "voice", "audio"},
	{"draw", "shape", "canvas"},
	{"font", "text", "typography"},
}

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// lexicon is the lists above by stem.
type lexicon struct {
	canonical map[string]string   // one word → the key of its group
	pairs     map[string]string   // two words → the same
	related   map[string][]string // key → keys
}

var vocabulary = newLexicon()

func newLexicon() lexicon {
	l := lexicon{map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, group := range sameAs {
		key := stem(strings.ReplaceAll(group[0], " ", ""))
		for _, spelling := range group {
			if a, b, two := strings.Cut(spelling, " "); two {
				l.pairs[stem(a)+" "+stem(b)] = key
			} else {
				l.canonical[stem(spelling)] = key
			}
		}
	}
	for _, group := range related {
		for _, a := range group {
			for _, b := range group {
				if ka, kb := l.key(a), l.key(b); ka != kb {
					l.related[ka] = append(l.related[ka], kb)
				}
			}
		}
	}
	return l
}

// key returns what a word is indexed by.
func (l lexicon) key(word string) string {
	s := stem(word)
	if key, ok := l.canonical[s]; ok {
		return key
	}
	return s
}
