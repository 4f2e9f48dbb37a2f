/** Computes which rows of a long list a page shows. */

/** Rows of a page of the machines table. */
export const PAGE_ROWS = 100

export interface PageOfRows<Row> {
  readonly rows: readonly Row[]
  /** The number of the page from 1; it is never past the last. */
  readonly page: number
  readonly pages: number
  /** The number of its first row, from 1. */
  readonly first: number
  readonly total: number
}

/**
 * By the parameter `page`, from 1; anything else means the first page. `most`: how many rows a page
 * has.
 */
export function cutPage<Row>(
  rows: readonly Row[],
  query: URLSearchParams,
  most = PAGE_ROWS,
): PageOfRows<Row> {
  const pages = Math.max(1, Math.ceil(rows.length / most))
  const requested = /^\d{1,6}$/.test(query.get('page') ?? '') ? Number(query.get('page')) : 1
  const page = Math.min(pages, Math.max(1, requested))
  return {
    rows: rows.slice((page - 1) * most, page * most),
    page,
    pages,
    first: (page - 1) * most + 1,
    total: rows.length,
  }
}
