/** Validates data from outside item by item, so that one bad item does not discard the others. */
import type { ZodType } from 'zod'

/** Returns the items of a list that have the shape; none where it is no list. */
export const parseEach = <Item>(shape: ZodType<Item>, list: unknown): readonly Item[] =>
  (Array.isArray(list) ? list : []).flatMap((item: unknown) => {
    const parsed = shape.safeParse(item)
    return parsed.success ? [parsed.data] : []
  })

/** For places that run before zod is worth loading. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
