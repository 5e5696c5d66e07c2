type ThenTree_4553552016 = { left?: ThenTree_4553552016; right?: ThenTree_4553552016; [key: string]: unknown };
interface Tools {
  /** What comes then. */
  call(id: "client:app:then", input: { tree: ThenTree_4553552016; name?: string; [key: string]: unknown }): Promise<unknown>;
}
declare var tools: Tools;
