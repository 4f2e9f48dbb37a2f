/** The fields of a form as a table: how each looks, and what is said where it is refused. */
import type { ZodError } from 'zod'
import { selectField, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { html, type Html } from '#kit/web/ui/html.ts'

type TextField = Parameters<typeof textField>[0]

export interface FormField extends Omit<TextField, 'name' | 'value' | 'error' | 'label'> {
  readonly label: string
  /** What is said where it is refused. */
  readonly wrong?: string
  /** It is one of these. */
  readonly options?: Parameters<typeof selectField>[0]['options']
}

export type FormErrors = Readonly<Record<string, string>>

/** What was typed comes back where it was refused; else what is stored. */
export const renderFormFields = (
  fields: Readonly<Record<string, FormField>>,
  stored: Readonly<Record<string, string | undefined>>,
  notice: Notice | null,
): Html =>
  html`${Object.entries(fields).map(([name, { options, ...field }]) => {
    const value = notice?.typed[name] ?? stored[name] ?? ''
    const given = { ...field, name, value, error: notice?.errors[name] ?? null }
    return options === undefined ? textField(given) : selectField({ ...given, options })
  })}`

const MAX_TYPED = 1000

/** Without what the form left out. */
export const readTyped = (
  fields: Readonly<Record<string, FormField>>,
  form: URLSearchParams,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.keys(fields).flatMap((name) => {
      const text = form.get(name)
      return text === null ? [] : [[name, text.slice(0, MAX_TYPED)]]
    }),
  )

/** Each wrong field with its text, or `otherwise`. */
export function describeWrong(
  error: ZodError | undefined,
  fields: Readonly<Record<string, FormField>>,
  otherwise = '',
): FormErrors {
  const names = new Set(error?.issues.map(({ path }) => String(path[0])))
  return Object.fromEntries([...names].map((name) => [name, fields[name]?.wrong ?? otherwise]))
}
