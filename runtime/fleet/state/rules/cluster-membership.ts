/** Where a `state.db` stands that follows a database which several servers share. */

export interface ClusterMembership {
  /** The random name that the database was given when its tables were made. */
  readonly cluster: string
  /** The newest change that the file holds, by its number and its id. */
  readonly seq: number
  readonly change: string
}
