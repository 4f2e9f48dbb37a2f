/** What one source of an image gave, where the image has several. */

export interface SourceShare {
  /** Whose it is: `http://10.0.0.5:8081`, without a path. */
  readonly name: string
  readonly bytes: number
  /** Why it was left; null: it was not. */
  readonly trouble: string | null
}
