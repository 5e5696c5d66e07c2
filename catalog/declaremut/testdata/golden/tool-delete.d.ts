interface Tools {
  delete(input?: Record<string, unknown>): Promise<unknown>;
}
declare var tools: Tools;
