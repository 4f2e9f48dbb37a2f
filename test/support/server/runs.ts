/** What a flashing machine posts, and what the server knows of it. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { MAC } from './machine-fixture.ts'
import {
  ProgressSchema,
  type RunProgress,
  type ProgressPost,
  type Run,
  type RunOrigin,
} from '#engine/inventory/rules/run.ts'

/** The n-th run's name. */
export const runIdOf = (n: number): string => `run-${String(n).padStart(8, '0')}`

/** A whole body; what is not said is nothing yet. */
export const bodyOf = (fields: Partial<ProgressPost> = {}): ProgressPost => ({
  run: runIdOf(1),
  phase: 'write',
  bytes_read: 0,
  bytes_written: 0,
  total_bytes: null,
  rate: null,
  eta_seconds: null,
  ...fields,
})

export const postOf = (fields: Partial<ProgressPost> = {}): RunProgress =>
  ProgressSchema.parse(bodyOf(fields))

export const originOf = (mac: Mac, fields: Partial<RunOrigin> = {}): RunOrigin => ({
  mac,
  mode: 'flash',
  image: null,
  disk: null,
  armed_by: { actor: 'operator', ip: '192.0.2.9', at: '2026-01-01T00:00:00.000Z' },
  ...fields,
})

/** One that has only begun. */
export const RUN: Run = {
  id: 'c0ffee00-0001',
  mac: MAC,
  mode: 'flash',
  reported: true,
  phase: 'write',
  result: null,
  stalled: false,
  started_at: null,
  updated_at: '2026-05-01T00:00:00.000Z',
  ended_at: null,
  step_bytes: 0,
  step_total: null,
  total_bytes: null,
  has_log: false,
  bytes_read: 0,
  bytes_written: 0,
  bytes_kept: null,
  delta: null,
  rate: null,
  eta_seconds: null,
  image: null,
  sources: null,
  disk: null,
  armed_by: null,
  bottleneck: null,
  server: null,
  warning: null,
  verified: null,
  reason: null,
  steps: [],
  proof: null,
  stamps: null,
}
