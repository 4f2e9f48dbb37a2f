/** What one source of an image gave, where the image has several. */

export interface SourceShare {
  readonly name: string
  readonly bytes: number
  /** Why it was left; null: it was not. */
  readonly trouble: string | null
}
