type GetUserTree_0b1d9cbbbb = { left?: GetUserTree_0b1d9cbbbb; right?: GetUserTree_0b1d9cbbbb; [key: string]: unknown };
interface Tools {
  /** get-user: Get a user. */
  get_user(input: { tree: GetUserTree_0b1d9cbbbb; name?: string; [key: string]: unknown }): Promise<(string | null)[]>;
}
declare var tools: Tools;
