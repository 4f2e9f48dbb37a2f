/** Current line: what pages call each setting and its values, in the language in use; English stands in the table of settings. */
import { SETTING_GROUPS } from '../../../../kit/config/rules/setting-groups.ts'
import { renderDuration } from '../../../../kit/config/rules/setting-kinds.ts'
import type { Setting, SettingTexts } from '../../../../kit/config/rules/setting.ts'
import type { Translated } from '../../../../kit/texts/translated.ts'
import { PAGES } from '../../../texts/texts.ts'
import { SETTINGS } from '../../rules/settings.ts'

const t = PAGES.settings.values

/** What a language fills; see docs/translating.md. */
export interface SettingTranslation {
  readonly groups: Translated<typeof SETTING_GROUPS>
  readonly settings: SettingTexts<typeof SETTINGS>
}

/** Another language is one more table, named here. */
export const SETTING_TEXTS = {
  groups: SETTING_GROUPS,
  settings: SETTINGS,
} as const satisfies SettingTranslation

interface Texts {
  readonly title: string
  readonly help: string
  readonly labels: Readonly<Record<string, string>>
}

const BY_NAME: ReadonlyMap<string, Texts> = new Map(
  Object.entries(SETTING_TEXTS.settings).flatMap(([section, keys]) =>
    Object.entries<Texts>(keys).map(([key, texts]) => [`${section}.${key}`, texts] as const),
  ),
)

/** Returns the texts of a setting by its dotted name; null where there is no such setting. */
export const findTexts = (name: string): Texts | null => BY_NAME.get(name) ?? null

/** Returns the title of a setting by its dotted name, or that name where there is no such setting. */
export const titleOf = (name: string): string => findTexts(name)?.title ?? name

/** A value for people: `On`, `30 minutes`, `200 GiB`, `No limit`; empty where there is none. */
export function describeValue(name: string, setting: Setting<unknown>, value: unknown): string {
  const label = findTexts(name)?.labels[String(value)]
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

/** The default for people, in words where the value alone is not clear. */
export function describeFallback(name: string, setting: Setting<unknown>): string {
  const words = setting.fallbackWords?.replaceAll('`', '')
  return words ?? (describeValue(name, setting, setting.fallback) || t.none)
}
