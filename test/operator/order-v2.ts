import { workflow } from "reprise";

export const order = workflow("order", { version: 2 }, async () => "from version 2");
