/** What keeps a machine's template from being used, in a sentence for the person in front of the machine. */
import { FEATURES } from '#appliance/contract.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderFirstBoot, type TemplateSubject } from './seed.ts'
import { hasSecrets, type Template } from './template.ts'

export interface LiveFeatures {
  readonly firstBoot: boolean
  readonly capture: boolean
  /** Knows disks by WWN, EUI and place; null: it announces nothing. */
  readonly diskId: boolean | null
  readonly sources?: boolean
  readonly peers?: boolean
}

/** `?features=first-boot,capture`. Hostile; unknown names are skipped. */
export function parseFeatures(query: Readonly<Record<string, string>>): LiveFeatures {
  const announced = query['features']
  const names = (announced ?? '').split(',')
  return {
    firstBoot: names.includes(FEATURES.firstBoot),
    capture: names.includes(FEATURES.capture),
    diskId: announced === undefined ? null : names.includes(FEATURES.diskId),
    sources: names.includes(FEATURES.sources),
    peers: names.includes(FEATURES.peers),
  }
}

interface TemplateMachine {
  readonly mac: Mac
  readonly name: string | null
  readonly labels: readonly string[]
  /** A template's name; null: none. */
  readonly first_boot: string | null
}

/** `serial` null: the machine has not reported one. */
export const subjectOf = (
  { mac, name, labels }: TemplateMachine,
  serial: string | null,
): TemplateSubject => ({ mac, name, labels, serial })

interface TemplateSurroundings {
  findTemplate(name: string): Template | null
  /** `[pxe] tokens`: machines must prove that the server booted them. */
  readonly tokens: 'off' | 'prefer' | 'require'
  readonly features: Pick<LiveFeatures, 'firstBoot'>
}

/** For a serial number that is looked up only when the configuration is fetched. */
const ANY_SERIAL = 'X'
const PREVIEW = { instance: 'preview', secrets: 'hidden' } as const

/** A sentence; null: no template, or it can be written. */
export function findTemplateObstacle(
  machine: TemplateMachine,
  { findTemplate, tokens, features }: TemplateSurroundings,
): string | null {
  if (machine.first_boot === null) return null
  const name = printable(machine.first_boot)
  const template = findTemplate(machine.first_boot)
  if (template === null) return `There is no first-boot template ${name} on the server any more.`
  if (!features.firstBoot) return OLD_CLIENT
  if (hasSecrets(template) && tokens !== 'require') {
    return `The first-boot template ${name} has secrets, which need [pxe] tokens = require on the server.`
  }
  const rendered = renderFirstBoot(template, subjectOf(machine, ANY_SERIAL), PREVIEW)
  return rendered.ok
    ? null
    : `The first-boot template ${name} does not fit this machine: ${rendered.refusal}.`
}

const OLD_CLIENT =
  'This machine has a first-boot template, and its live system does not know templates: install a newer live system on the server.'
