/** The change of a machine's record by one request, and its consequences. */
import type { BootDecision } from '../../fleet/boot/rules/boot-decision.ts'
import type { PlainEvent } from '../../kit/web/answers/plain-event.ts'
import type { BootLoader } from '../../fleet/boot/rules/boot-script.ts'
import type { FlashSlot, Inventory } from '../../engine/inventory/rules/machine.ts'

/** What a rule may know of one request of a machine (or of an operator, where it renders a script). */
export interface Contact {
  /** ISO time. */
  readonly now: string
  /** `http://host:port`, checked: it goes into scripts and kernel command lines. */
  readonly baseUrl: string
  readonly ip: string | null
  /** What it shows as `Authorization: Bearer`: hostile, bounded in length. */
  readonly bearer: string | null
  /** What the machine says of itself in the query (`buildarch`, `platform`…): hostile, bounded in length. */
  readonly query: Readonly<Record<string, string>>
  /** The boot loader in whose words the script is rendered; iPXE's when absent. */
  readonly loader?: BootLoader
}

/** What a machine reports, beside asking for its script and its plan. */
export type Signal =
  /** `GET /boot/{name}?mac=`, of a file that exists. */
  | { readonly kind: 'boot-file'; readonly name: string }
  | { readonly kind: 'inventory'; readonly inventory: Inventory }
  /** The first post of a run that does what the record says. */
  | { readonly kind: 'run-began' }
  /** A run ended by its own post, and not well; `done` and `failed` may follow. */
  | {
      readonly kind: 'run-stopped'
      readonly result: 'failed' | 'cancelled'
      readonly reason: string | null
    }
  /** The run of a capture ended by its own post. */
  | {
      readonly kind: 'capture-ended'
      readonly result: 'done' | 'failed' | 'cancelled'
      readonly reason: string | null
      /** ISO time when it was first heard of; null: not known. */
      readonly startedAt: string | null
    }
  /** `order`: that of the run that it names; null or absent: it names none that is known. */
  | { readonly kind: 'done'; readonly order?: string | null }
  | { readonly kind: 'failed'; readonly order?: string | null; readonly reason: string | null }

/** A record after something happened to it. The same object as before: nothing to store. */
export interface Transition<M> {
  readonly machine: M
  readonly events: readonly PlainEvent[]
  /** Absent: its place stays as it is. */
  readonly slot?: FlashSlot
}

export interface ScriptTransition<M> extends Transition<M> {
  /** The whole script, in the words of the contact's boot loader. */
  readonly script: string
  readonly boots: BootDecision['kind']
  /** Both from short closed lists: labels of a metric. */
  readonly mode: string
  readonly offer: string
}

export interface PlanTransition<M> extends Transition<M> {
  /** The plan as it is sent; the same object stands for the same response. */
  readonly plan: Readonly<Record<string, unknown>>
  readonly mode: string
}

/** Why a machine comes: for its plan, to list its disks, to begin a run, to report one. */
export type MachineRequest = 'plan' | 'inventory' | 'begin' | 'report'
