/** A machine as pages show it: its record, its state, and its flash that is under way. */
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Workflows } from '../assembly/workflows.ts'
import type { Machine } from '../rules/machine.ts'
import { decideState, type StateView } from '../rules/state.ts'
import type { EarlierContext } from './page-context.ts'

export interface StatedMachine {
  readonly machine: Machine
  readonly view: StateView
  readonly run: Run | null
}

interface StateSources {
  findRun(mac: string): Run | null
  readonly workflows: Pick<Workflows['runs'], 'list'>
  now(): Date
}

export function viewMachine(machine: Machine, sources: StateSources): StatedMachine {
  const { findRun, workflows, now } = sources
  const run = findRun(machine.mac)
  const hasFailed = machine.last_workflow_status === 'failed'
  const workflowError = hasFailed ? (workflows.list(machine.mac)[0]?.error ?? null) : null
  return { machine, run, view: decideState(machine, { run, workflowError, now: now() }) }
}

export const viewOf = (
  { site, services, clock }: EarlierContext,
  machine: Machine,
): StatedMachine =>
  viewMachine(machine, {
    findRun: site.runs.findRunning,
    workflows: services.workflows.runs,
    now: () => clock().now,
  })

export const nameOf = ({ hostname, mac }: Machine): string => hostname ?? mac
