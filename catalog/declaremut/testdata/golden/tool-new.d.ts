interface Tools {
  /** Make one. */
  "new"(input?: Record<string, unknown>): Promise<unknown>;
}
declare var tools: Tools;
