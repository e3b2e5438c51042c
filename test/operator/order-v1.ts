import { workflow } from "reprise";

export const order = workflow("order", async () => "from version 1");
