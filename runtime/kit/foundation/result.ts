/** `Result`: the return value of a function that can refuse. */

export type Result<Value, Refusal> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refusal: Refusal }

/** Wraps the value of a function that could have refused. */
export const accept = <Value>(value: Value) => ({ ok: true, value }) as const
/** Wraps a refusal with its facts; it is returned, not thrown. */
export const refuse = <Refusal>(refusal: Refusal) => ({ ok: false, refusal }) as const
