// The types of this tool do not fit here: await tools.describe("plugin:users:get-user") has its schemas.
interface Tools {
  /** get-user */
  get_user(input?: Record<string, unknown>): Promise<unknown>;
}
declare var tools: Tools;
