/** An expected yes or no as a value: what a pure function answers when it can refuse. */

export type Result<Value, Refusal> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refusal: Refusal }

export const accept = <Value>(value: Value) => ({ ok: true, value }) as const
export const refuse = <Refusal>(refusal: Refusal) => ({ ok: false, refusal }) as const
