/** The change of a machine's record by one request, and its consequences. */
import type { BootDecision } from '#fleet/boot/rules/boot-decision.ts'
import type { PlainEvent } from '#kit/web/answers/caller.ts'
import type { BootLoader } from '#fleet/boot/rules/boot-script.ts'
import type { FlashSlot, Inventory } from '#engine/inventory/rules/machine.ts'

/** Of a machine, or of an operator for whom a script is rendered. */
export interface Contact {
  /** ISO time. */
  readonly now: string
  /** `http://host:port`, checked: it goes into scripts and kernel command lines. */
  readonly baseUrl: string
  readonly ip: string | null
  /** From `Authorization: Bearer`: hostile, bounded in length. */
  readonly bearer: string | null
  /** The machine's query (`buildarch`, `platform`…): hostile, bounded in length. */
  readonly query: Readonly<Record<string, string>>
  /** Absent: iPXE. */
  readonly loader?: BootLoader
}

export type Signal =
  /** `GET /boot/{name}?mac=`, of a file that exists. */
  | { readonly kind: 'boot-file'; readonly name: string }
  | { readonly kind: 'inventory'; readonly inventory: Inventory }
  /** The first post of a run that does what the record says. */
  | { readonly kind: 'run-began' }
  /** A run that ended badly by its own post; `done` or `failed` may follow. */
  | {
      readonly kind: 'run-stopped'
      readonly result: 'failed' | 'cancelled'
      readonly reason: string | null
    }
  | {
      readonly kind: 'capture-ended'
      readonly result: 'done' | 'failed' | 'cancelled'
      readonly reason: string | null
      /** ISO time; null: unknown. */
      readonly startedAt: string | null
    }
  /** `order`: of the run it names; null or absent: no known run. */
  | { readonly kind: 'done'; readonly order?: string | null }
  | { readonly kind: 'failed'; readonly order?: string | null; readonly reason: string | null }

/** The same object as before: nothing to store. */
export interface Transition<M> {
  readonly machine: M
  readonly events: readonly PlainEvent[]
  /** Absent: its place stays as it is. */
  readonly slot?: FlashSlot
}

export interface ScriptTransition<M> extends Transition<M> {
  /** In the language of the contact's boot loader. */
  readonly script: string
  readonly boots: BootDecision['kind']
  /** Both from short closed lists, for metrics. */
  readonly mode: string
  readonly offer: string
}

export interface PlanTransition<M> extends Transition<M> {
  /** The same object stands for the same response. */
  readonly plan: Readonly<Record<string, unknown>>
  readonly mode: string
}

export type MachineRequest = 'plan' | 'inventory' | 'begin' | 'report'
