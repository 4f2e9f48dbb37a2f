/** What pages call the settings of a line and their values, in the language in use; English stands in the table of settings. */
import { SETTING_GROUPS } from '#kit/config/rules/setting-groups.ts'
import { renderDuration } from '#kit/config/rules/setting-kinds.ts'
import type { NamedTexts, Setting, TextsOfSetting } from '#kit/config/rules/setting.ts'
import type { ShownSetting } from '#kit/config/rules/shown-setting.ts'
import type { Translated } from '#kit/texts/translated.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.settings.values

export const GROUP_TEXTS: Translated<typeof SETTING_GROUPS> = SETTING_GROUPS

function findTexts(texts: NamedTexts, name: string): TextsOfSetting | null {
  const [section = '', key = ''] = name.split('.')
  const keys = Object.hasOwn(texts, section) ? (texts[section] ?? {}) : {}
  return Object.hasOwn(keys, key) ? (keys[key] ?? null) : null
}

export const findTitle = (texts: NamedTexts, name: string): string | null =>
  findTexts(texts, name)?.title ?? null

export const translateRows = (
  rows: readonly ShownSetting[],
  texts: NamedTexts,
): readonly ShownSetting[] =>
  rows.map((row) => {
    const { title, help, labels } = findTexts(texts, row.name) ?? row.setting
    return { ...row, setting: { ...row.setting, title, help, labels } }
  })

/** `On`, `30 minutes`, `200 GiB`, `No limit`; empty: no value. */
export function describeValue(setting: Setting<unknown>, value: unknown): string {
  const label = setting.labels[String(value)]
  if (label !== undefined) return label
  if (typeof value === 'boolean') return value ? t.on : t.off
  if (setting.field.as === 'duration' && typeof value === 'number') return describeSpan(value)
  return setting.toField(value).replaceAll('\n', ', ')
}

const WORDS: Readonly<Record<string, string>> = {
  s: 'second',
  min: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
}

/** `30 minutes`, `1 day`. */
function describeSpan(seconds: number): string {
  const [count = '', unit = ''] = renderDuration(seconds).split(' ')
  const word = WORDS[unit]
  if (word === undefined) return t.never
  return new Intl.NumberFormat(t.locale, {
    style: 'unit',
    unit: word,
    unitDisplay: 'long',
    useGrouping: false,
  }).format(Number(count))
}

export function describeFallback(setting: Setting<unknown>): string {
  const words = setting.fallbackWords?.replaceAll('`', '')
  return words ?? (describeValue(setting, setting.fallback) || t.none)
}
