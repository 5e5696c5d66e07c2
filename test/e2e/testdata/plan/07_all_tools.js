return {
  ids: ALL_TOOLS.map((t) => t.id),
  compact: ALL_TOOLS.every((t) => t.name && t.description && t.source && !("parameters" in t)),
};
