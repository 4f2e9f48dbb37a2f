/** Earlier line: what an operator can do to one machine or many: set its policy. */
import { z } from 'zod'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'
import type { BootPolicy, Machine } from './machine.ts'
import { arm } from './upsert.ts'

export const NoParameters = z.strictObject({}).nullish()

export const POLICY_PASTS: Readonly<Record<BootPolicy, string>> = {
  local: 'boots its own disk from now on',
  flash: 'is flashed at its next network boot',
  tui: 'asks the person in front of it from now on',
}

/** The same policy again begins a new cycle. */
export const applyPolicy = (
  machine: Machine,
  policy: BootPolicy,
  by: Armer,
): Result<Machine, string> =>
  policy === 'flash' && machine.image === null
    ? refuse('No image is assigned.')
    : accept(arm({ ...machine, boot_policy: policy, updated_at: by.at }, by))
