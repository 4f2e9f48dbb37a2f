/** A machine as pages show it: its record, its state, and its flash that is under way. */
import type { Run, RunDisk } from '#engine/inventory/rules/run.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { Workflows } from '../assembly/workflows.ts'
import type { Machine } from '../rules/machine.ts'
import { decideState, type StateView } from '../rules/state.ts'
import type { ImageShelf } from '#engine/image/images.ts'
import type { LiveFiles } from '#fleet/boot/boot-files.ts'
import type { PxeHelper } from '#fleet/boot/pxe-helper.ts'
import type { ReleaseFetches } from '#fleet/boot/releases.ts'
import type { InterfaceAddress } from '#fleet/boot/rules/dhcp.ts'
import type { ProvisionFiles } from '#fleet/workflow/online-workflows.ts'
import type { PageContext, PageServices } from '#server/pages/page-context.ts'
import type { LineConfig } from '../assembly/state.ts'

export interface StatedMachine {
  readonly machine: Machine
  readonly view: StateView
  readonly run: Run | null
  /** The one that is being flashed, else the last one; null: unknown. */
  readonly disk: Pick<RunDisk, 'model' | 'serial' | 'path'> | null
}

interface StateSources {
  readonly runs: Pick<Runs, 'findRunning' | 'findWritten'>
  readonly workflows: Pick<Workflows['runs'], 'list'>
  now(): Date
}

export function viewMachine(machine: Machine, sources: StateSources): StatedMachine {
  const { runs, workflows, now } = sources
  const run = runs.findRunning(machine.mac)
  const written = runs.findWritten(machine.mac)
  const disk = run?.disk ?? (written && { ...written, path: null })
  const hasFailed = machine.last_workflow_status === 'failed'
  const workflowError = hasFailed ? (workflows.list(machine.mac)[0]?.error ?? null) : null
  return { machine, run, disk, view: decideState(machine, { run, workflowError, now: now() }) }
}

export const viewOf = (
  { site, services, clock }: EarlierContext,
  machine: Machine,
): StatedMachine =>
  viewMachine(machine, {
    runs: site.runs,
    workflows: services.workflows.runs,
    now: () => clock().now,
  })

export const nameOf = ({ hostname, mac }: Machine): string => hostname ?? mac

export interface PxeServices extends PxeHelper {
  listAddresses(): readonly InterfaceAddress[]
  port(): number
}

export interface EarlierServices extends PageServices {
  readonly config: LineConfig
  readonly shelf: ImageShelf
  readonly files: ProvisionFiles
  readonly workflows: Workflows
  readonly bootFiles: LiveFiles
  readonly releases: ReleaseFetches
  readonly pxe: PxeServices
  /** The account whose password is the operator's. */
  readonly user: string
}

export type EarlierContext = PageContext<Machine, EarlierServices>
